"""The first repair that is told of each broken model, and how it compares with that of the repaired twin."""

SAME = {
    "wrong_in_features": "change 400 to 256 (in_features of fc1)",
    "wrong_conv_channels": "change 16 to 8 (in_channels of second)",
    "wrong_norm_features": "change 16 to 8 (num_features of bn)",
    "groups_do_not_divide": "change self.groups from 3 to 4",
    "missing_flatten": "change x to x.flatten(1)",
    "flattened_batch": "change self.start from 0 to 1",
    "wrong_lstm_input": "change 10 to 12 (input_size of lstm)",
    "embedding_mixup": "change 100 to 16 (in_features of project)",
    "towers_miscounted": "change 16 to 20 (in_features of head)",
    "dense_skips_miscounted": "change 12 to 16 (in_features of layers.2)",
    "mismatched_cat": "change 0 to 1 (padding of three)",
    "strided_cat": "change 1 to 2 (stride of fine)",
    "odd_sizes_into_unet": (
        "change self.up(y) to torch.nn.functional.interpolate(self.up(y), size=skip.shape[2:])"
    ),
    "transposed_conv_misses_one": (
        "change self.up(torch.relu(self.down(x))) to "
        "self.up(torch.relu(self.down(x)), output_size=x.shape[2:])"
    ),
    "wrong_residual_channels": "change nn.Identity() to nn.Conv2d(8, 16, 1) (shortcut)",
    "wrong_residual_stride": "change nn.Identity() to nn.Conv2d(4, 4, 1, stride=2) (shortcut)",
    "bidirectional_state": "change True to False (bidirectional of encoder)",
    "stack_of_different_shapes": "change 6 to 8 (out_features of b)",
    "interpolated_to_a_square": "change (h, h) to x.shape[-2:]",
    "hard_coded_batch": "change 2 to x.shape[0]",
    "heads_do_not_divide": "change self.heads from 4 to 5",
    "view_of_transposed_heads": (
        "change y.transpose(1, 2).view(b, t, h * d) to y.transpose(1, 2).reshape(b, t, h * d)"
    ),
    "missing_transpose": "change k to k.transpose(-2, -1)",
    "einsum_scores": "change self.equation from 'bid,bdj->bij' to 'bid,bjd->bij'",
    "einsum_weight": "change self.equation from 'bnd,dk->bnk' to 'bnd,kd->bnk'",
    "mask_without_heads": "change pad to pad[:, None, None, :]",
    "head_dims_differ": "change 6 to 8 (out_features of k)",
    "attention_batch_first": "change False to True (batch_first of attn)",
    "view_after_transpose": (
        "change x.transpose(1, 2).view(x.size(0), -1) to x.transpose(1, 2).reshape(x.size(0), -1)"
    ),
    "lstm_batch_first": "change False to True (batch_first of lstm)",
    "missing_unsqueeze": "change weights to weights.unsqueeze(-1)",
    "norm_over_time": (
        "change self.norm(features) to self.norm(features.transpose(1, 2)).transpose(1, 2)"
    ),
    "time_as_channels": "change x to x.transpose(-2, -1)",
    "squeezed_batch": "change x.squeeze() to x.squeeze(1)",
    "mean_over_channels": "change self.dims from (1,) to (2, 3)",
    "wrong_view_constant": "change self.side from 6 to 5",
    "wrong_split_sizes": "change self.sizes from [8, 8, 6] to [8, 8, 8]",
    "pixel_shuffle_channels": "change 10 to 12 (out_channels of conv)",
    "kernel_larger_than_input": "change 0 to 4 (padding of conv)",
    "index_of_the_example": "change self.step from 7 to -1",
    "folded_to_wrong_size": "change self.size from 12 to 16",
    "classes_in_last_place": "change logits to logits.transpose(-2, -1)",
    "labels_in_a_row": "change logits to logits.squeeze(-1)",
}
"""It does what the twin does, in the same words or in others of the same meaning."""

BETTER = {
    # The twin takes 6 and 20; these numbers are nearer to those that stand there.
    "reshape_into_batch": "change self.shape from (-1, 7, 16) to (-1, 8, 15)",
    # The twin gives all later tokens the last position; to refuse them keeps positions apart.
    "positions_run_out": "declare t <= 32",
}
"""It is another than that of the twin, and as good or better."""

OTHER: dict[str, str] = {}
"""It makes the program right, in a way that the author may not have meant."""

FIRST = SAME | BETTER | OTHER
