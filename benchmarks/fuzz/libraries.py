"""Calls of libraries that check their arguments: distributions, losses, linear algebra, and utilities."""

from __future__ import annotations

from typing import Final

from .control import caught, filled
from .operators import inputs, step
from .program import Program
from .writer import Writer

DISTRIBUTIONS: Final = (
    "Normal({t}, torch.ones_like({t}))", "Normal({t}, {u}.exp())", "Normal(0.0, torch.ones({n}))",
    "Bernoulli(logits={t})", "Bernoulli(torch.sigmoid({t}))",
    "Bernoulli(probs={t})", "Categorical(logits={t})", "Categorical({t}.softmax(-1))",
    "Categorical(torch.ones({n}, {m}))", "Dirichlet({t}.exp())",
    "Dirichlet(torch.ones({n}))", "Beta({t}.exp(), {u}.exp())", "Gamma({t}.exp(), 1.0)",
    "Exponential({t}.exp())", "Laplace({t}, 1.0)",
    "Uniform({t}, {t} + 1)", "Poisson({t}.exp())", "Cauchy({t}, 1.0)",
    "Gumbel({t}, 1.0)", "StudentT(3.0, {t})", "HalfNormal({t}.exp())",
    "OneHotCategorical(logits={t})", "Multinomial({k}, logits={t})", "Geometric(logits={t})",
    "Binomial({k}, logits={t})", "VonMises({t}, 1.0)", "Chi2({t}.exp())",
    "MultivariateNormal({t}, torch.eye({t}.shape[-1]))", "MultivariateNormal({t}, torch.eye({k}))",
    "LowRankMultivariateNormal({t}, torch.ones({t}.shape[-1], 1), torch.ones({t}.shape[-1]))",
    "Independent(torch.distributions.Normal({t}, 1.0), 1)",
    "Independent(torch.distributions.Normal({t}, 1.0), {k})", "LogNormal({t}, 1.0)",
    "RelaxedBernoulli(torch.tensor(1.0), logits={t})",
    "MixtureSameFamily(torch.distributions.Categorical(logits={t}), torch.distributions.Normal({t}, 1.0))",
    "MixtureSameFamily(torch.distributions.Categorical(logits={t}), torch.distributions.Normal({u}, 1.0))",
    "TransformedDistribution(torch.distributions.Normal({t}, 1.0), "
    "[torch.distributions.transforms.ExpTransform()])",
    "ContinuousBernoulli(logits={t})",
    "Kumaraswamy({t}.exp(), {t}.exp())", "Pareto(1.0, {t}.exp())", "Weibull(1.0, {t}.exp())",
    "NegativeBinomial({k}, logits={t})", "FisherSnedecor({t}.exp(), 2.0)",
    "Normal({t}, 1.0, validate_args=False)", "Categorical(logits={t}, validate_args=False)",
    "LKJCholesky({k})", "Wishart({k}.0, torch.eye({k}))",
)  # fmt: skip

OF_DISTRIBUTIONS: Final = (
    "{p}.mean", "{p}.variance", "{p}.stddev", "{p}.sample()", "{p}.rsample()", "{p}.sample(({n},))",
    "{p}.rsample((2, {k}))", "{p}.log_prob({t})", "{p}.log_prob({u})",
    "{p}.log_prob({p}.sample())", "{p}.entropy()", "{p}.expand(({n}, *{p}.batch_shape)).mean",
    "{p}.expand({t}.shape).mean", "{p}.cdf({t})", "torch.zeros({p}.batch_shape)",
    "torch.zeros({p}.event_shape)", "torch.distributions.kl_divergence({p}, {p})", "{p}.enumerate_support()",
    "{p}.mode", "{p}.has_rsample * {t}", "{p}.icdf(torch.sigmoid({t}))",
    "torch.distributions.kl_divergence({p}, torch.distributions.Normal({u}, 1.0))",
    "{p}.log_prob(torch.zeros({n}))", "{p}.param_shape", "{p}.perplexity()", "{p}.sample_n({k})",
)  # fmt: skip

LOSSES: Final = (
    "F.mse_loss({t}, {u})", "F.l1_loss({t}, {u}, reduction='none')", "F.smooth_l1_loss({t}, {t})",
    "F.huber_loss({t}, {u})", "F.kl_div({t}, {u}.softmax(-1), reduction='batchmean')",
    "F.binary_cross_entropy({t}.sigmoid(), {u}.sigmoid())", "F.binary_cross_entropy_with_logits({t}, {u})",
    "F.binary_cross_entropy_with_logits({t}, {t}, pos_weight=torch.ones({k}))",
    "F.cross_entropy({t}, {u})", "F.cross_entropy({t}, {t}.softmax(1))",
    "F.cross_entropy({t}, torch.zeros({n}).long())", "F.cross_entropy({t}, {t}.argmax(1))",
    "F.cross_entropy({t}, torch.zeros({t}.shape[0]).long(), weight=torch.ones({k}))",
    "F.nll_loss({t}, torch.zeros({t}.shape[0]).long())",
    "F.nll_loss({t}, torch.zeros({n}).long(), reduction='sum')",
    "F.gaussian_nll_loss({t}, {u}, torch.ones({n}))",
    "F.gaussian_nll_loss({t}, {t}, torch.ones({t}.shape[0], 1))",
    "F.poisson_nll_loss({t}, {u})", "F.cosine_embedding_loss({t}, {u}, torch.ones({n}))",
    "F.margin_ranking_loss({t}, {u}, torch.ones({n}))", "F.triplet_margin_loss({t}, {u}, {t})",
    "F.hinge_embedding_loss({t}, torch.ones_like({t}))",
    "F.multilabel_margin_loss({t}, torch.zeros({t}.shape).long())",
    "F.multi_margin_loss({t}, torch.zeros({n}).long())", "F.soft_margin_loss({t}, {u}.sign())",
    "F.multilabel_soft_margin_loss({t}, {u}.sigmoid())",
    "F.ctc_loss({t3}.log_softmax(2), torch.zeros({n}, {k}).long(), torch.full(({n},), {k}), "
    "torch.full(({n},), 1))",
    "F.cosine_similarity({t}, {u}, dim=-1)",
    "F.pairwise_distance({t}, {u})", "torch.cdist({t}, {u})", "F.pdist({t})",
    "nn.TripletMarginWithDistanceLoss()({t}, {u}, {t})",
    "nn.AdaptiveLogSoftmaxWithLoss({k}, 8, [4])({t}, torch.zeros({n}).long()).loss",
    "nn.CTCLoss()({t3}, torch.ones({n}, 2).long(), torch.full(({n},), 3), torch.full(({n},), 2))",
    "F.dropout({t}, {k} / 5)", "F.feature_alpha_dropout({t}[None])", "F.gumbel_softmax({t}, hard=True)",
)  # fmt: skip

OTHERS: Final = (
    "torch.linalg.inv({t})", "torch.linalg.solve({t}, {u})", "torch.linalg.cholesky(torch.eye({n}))",
    "torch.linalg.qr({t}).Q", "torch.linalg.svd({t}, full_matrices=False).S", "torch.linalg.det({t})",
    "torch.linalg.norm({t}, dim=(0, 1))", "torch.linalg.vector_norm({t}, dim=0)",
    "torch.linalg.matrix_norm({t})", "torch.linalg.eigvalsh({t} @ {t}.mT)",
    "torch.linalg.lstsq({t}, {u}).solution", "torch.linalg.matrix_power({t}, {k})",
    "torch.linalg.cross({t}, {u})", "torch.linalg.multi_dot([{t}, {u}, {t}])", "torch.linalg.pinv({t})",
    "torch.linalg.matrix_rank({t})", "torch.linalg.slogdet({t})[1]",
    "torch.linalg.tensorsolve(torch.eye({n}), torch.ones({n}))",
    "torch.fft.fft({t}).real", "torch.fft.irfft({t})", "torch.fft.rfft2({t}).real",
    "torch.fft.fft({t}, n={k}).real", "torch.fft.fftshift({t})", "torch.fft.fftfreq({n})",
    "torch.fft.rfftfreq({n})",
    "torch.stft({t}, {k}, return_complex=True).real",
    "torch.stft({t1}, 4, 2, window=torch.ones({k}), return_complex=True).real",
    "torch.istft(torch.stft({t1}, 4, return_complex=True), 4)", "torch.cov({t})", "torch.corrcoef({t})",
    "nn.utils.rnn.pad_sequence([{t}, {t}[1:]])",
    "nn.utils.rnn.pack_padded_sequence({t3}, [{n}], batch_first=True).data",
    "nn.utils.parameters_to_vector([{t}, {t}])", "nn.utils.clip_grad_norm_([{t}], 1.0)",
    "torch.vmap(lambda r: r.sum())({t})", "torch.func.vmap(torch.dot)({t}, {u})",
    "torch.func.grad(lambda z: z.sum())({t})",
    "torch.utils.checkpoint.checkpoint(torch.relu, {t}, use_reentrant=False)",
    "torch.einsum('...i,...i->...', {t}, {u})", "torch.einsum('ij,kj->ik', {t}, {u})",
    "torch.einsum('bii->b', {t})", "torch.einsum('i,j->ij', {t}, {u})", "torch.trapezoid({t})",
    "torch.cumulative_trapezoid({t})", "torch.gradient({t}, dim=0)[0]",
    "torch.histc({t}, {k})", "torch.histogram({t}, {k}).hist",
    "torch.bucketize({t}, torch.linspace(0, 1, {k})).float()", "torch.quantile({t}, 0.5, dim=0)",
    "torch.nanmedian({t})", "torch.renorm({t}, 2, 0, 1.0)", "torch.chain_matmul({t}, {u})",
    "torch.baddbmm({t3}, {t3}, {t3})", "torch.addmm({t}, {u}, {u})", "torch.addmv({t}, {u}, {t})",
    "torch.addr({t2}, {t1}, {u1})", "torch.ger({t}, {u})", "torch.mv({t}, {u})", "torch.dot({t}, {u})",
    "torch.vdot({t}, {t})", "torch.inner({t}, {u})",
    "torch.cartesian_prod({t1}, {u1})", "torch.vander({t1}, {k})", "torch.logcumsumexp({t}, 0)",
    "torch.rot90({t})", "torch.trace({t})", "torch.tril_indices({n}, {m}).float()",
    "torch.poisson({t}.exp())", "torch.polar({t}.abs(), {t}).real",
    "torch.block_diag({t}, {u}, {t})", "torch.column_stack([{t}, {u}])", "torch.dstack([{t}, {u}])",
    "torch.vstack([{t}, {u}])", "torch.hsplit({t}, {k})[0]", "torch.vsplit({t}, {k})[-1]",
    "torch.dsplit({t}, 2)[0]", "torch.atleast_3d({t})", "torch.ravel({t})",
    "torch.take_along_dim({t}, {t}.argsort(0), 0)", "torch.lu_solve({t}, *torch.linalg.lu_factor({u}))",
    "torch.triangular_solve({t}, {u}).solution", "torch.searchsorted({t}, {u}).float()",
    "torch.isin({t}, {u}).float()", "torch.bincount({t}.abs().long())",
    "F.grid_sample({t3}[None], torch.zeros(1, {n}, {m}, 2))",
    "F.affine_grid(torch.zeros({n}, 2, 3), ({n}, 1, {k}, {m}))",
    "F.unfold({t}[None, None], ({k}, {j}), stride={k})",
    "F.multi_head_attention_forward({t3}, {t3}, {t3}, {k}, 1, None, None, None, None, False, 0.0, "
    "torch.eye({k}), None)[0]",
    "F.scaled_dot_product_attention({t3}, {t3}, {t3}, attn_mask=torch.ones({n}, {m}).bool())",
    "F.embedding_bag(torch.arange({n}), {t}, torch.tensor([0, {k}]))", "F.normalize({t}, dim=1)",
    "F.instance_norm({t3})", "F.batch_norm({t}, torch.zeros({k}), torch.ones({k}))",
    "torch.nested.nested_tensor([{t}, {t}]).to_padded_tensor(0.0)",
    "torch.sparse_coo_tensor(torch.zeros(2, {n}).long(), torch.ones({n}), ({k}, {m})).to_dense()",
    "{t}.to_sparse().to_dense()", "torch.sparse.mm({t}.to_sparse(), {u})",
    "torch.testing.assert_close({t}, {t}) or {t}",
    "torch._assert({n} > {k}, 'small') or {t}", "torch._check({n} > {k}) or {t}",
    "torch._assert_async({t}.sum() >= 0) or {t}", "torch.broadcast_to({t}, ({n}, {m}))",
    "torch.Size([{n}, {m}]).numel() * {t}", "torch.promote_types(torch.float32, torch.int8) and {t}",
    "torch.jit.annotate(torch.Tensor, {t})", "torch.Tensor({n}, {k}).fill_(1.0)",
    "torch.FloatTensor({n}).zero_()", "torch.nn.init.eye_(torch.empty({n}, {m}))",
    "torch.nn.init.xavier_uniform_(torch.empty({n}))", "torch.nn.init.orthogonal_(torch.empty({n}, {m}))",
    "torch.nn.init.dirac_(torch.empty({n}, {m}, 3))",
)  # fmt: skip


def distributions(w: Writer, name: str) -> Program:
    """A distribution, and what is asked of it."""
    inputs(w)
    if w.rng.random() < 0.3:
        step(w)
    text = w.rng.choice(DISTRIBUTIONS)
    w.used.append(text.split("(")[0])
    w.emit(f"p = torch.distributions.{_filled(w, text)}")
    text = w.rng.choice(OF_DISTRIBUTIONS)
    w.used.append(text)
    w.let(_filled(w, text.replace("{p}", "p")), None)
    return w.program(name, w.tensors[-1].name)


def libraries(w: Writer, name: str) -> Program:
    """One or two calls that check what they are given."""
    inputs(w)
    for _ in range(w.rng.choice((1, 1, 2))):
        if w.rng.random() < 0.3:
            step(w)
        text = w.rng.choice(w.rng.choice((LOSSES, OTHERS)))
        w.used.append(text.split("(")[0])
        w.let(_filled(w, text), None)
    if w.rng.random() < 0.1:
        caught(w)
    return w.program(name, w.tensors[-1].name)


def _filled(w: Writer, text: str) -> str:
    """The text with its holes filled, those of a certain rank with tensors of that rank where there are any.
    """
    for rank in (1, 2, 3):
        for hole in (f"{{t{rank}}}", f"{{u{rank}}}"):
            while hole in text:
                text = text.replace(hole, (w.find(rank=rank) or w.tensors[0]).name, 1)
    return filled(w, text)
