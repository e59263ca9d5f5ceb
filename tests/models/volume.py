# ruff: noqa: RUF059  # as users write it
"""Point clouds, graphs, video and volumes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always


class TNet(nn.Module):
    def __init__(self, k: int = 3):
        super().__init__()
        self.k = k
        self.conv1 = nn.Conv1d(k, 8, 1)
        self.conv2 = nn.Conv1d(8, 16, 1)
        self.bn = nn.BatchNorm1d(8)
        self.fc = nn.Linear(16, k * k)

    def forward(self, x: Tensor) -> Tensor:
        batchsize = x.size()[0]
        x = F.relu(self.bn(self.conv1(x)))
        x = F.relu(self.conv2(x))
        x = torch.max(x, 2, keepdim=True)[0]
        x = x.view(-1, 16)
        x = self.fc(x)
        iden = torch.eye(self.k).view(1, self.k * self.k).repeat(batchsize, 1)
        return (x + iden).view(-1, self.k, self.k)


class PointNet(nn.Module):
    """A learnt rotation, shared layers over the points, the largest feature of all; a label for each
    point.
    """

    def __init__(self, classes: int = 4):
        super().__init__()
        self.stn = TNet(3)
        self.conv1 = nn.Conv1d(3, 8, 1)
        self.conv2 = nn.Conv1d(8, 16, 1)
        self.bn1 = nn.BatchNorm1d(8)
        self.bn2 = nn.BatchNorm1d(16)
        self.classify = nn.Conv1d(24, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        n_pts = x.size()[2]
        trans = self.stn(x)
        x = x.transpose(2, 1)
        x = torch.bmm(x, trans)
        x = x.transpose(2, 1)
        pointfeat = F.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(pointfeat))
        x = torch.max(x, 2, keepdim=True)[0]
        x = x.view(-1, 16, 1).repeat(1, 1, n_pts)
        return self.classify(torch.cat([x, pointfeat], 1)).transpose(2, 1)


def knn(x: Tensor, k: int) -> Tensor:
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x**2, dim=1, keepdim=True)
    pairwise_distance = -xx - inner - xx.transpose(2, 1)
    return pairwise_distance.topk(k=k, dim=-1)[1]


class DGCNN(nn.Module):
    """Edges to the eight nearest neighbours, found by topk: eight points at least."""

    def __init__(self, k: int = 8):
        super().__init__()
        self.k = k
        self.conv1 = nn.Conv2d(6, 8, 1, bias=False)
        self.conv2 = nn.Conv2d(16, 8, 1, bias=False)
        self.linear = nn.Linear(32, 5)

    def get_graph_feature(self, x: Tensor) -> Tensor:
        batch_size, num_dims, num_points = x.size()
        idx = knn(x, k=self.k)
        idx_base = torch.arange(0, batch_size).view(-1, 1, 1) * num_points
        idx = (idx + idx_base).view(-1)
        x = x.transpose(2, 1).contiguous()
        feature = x.view(batch_size * num_points, -1)[idx, :]
        feature = feature.view(batch_size, num_points, self.k, num_dims)
        x = x.view(batch_size, num_points, 1, num_dims).repeat(1, 1, self.k, 1)
        return torch.cat((feature - x, x), dim=3).permute(0, 3, 1, 2).contiguous()

    def forward(self, x: Tensor) -> Tensor:
        batch_size = x.size(0)
        x1 = self.conv1(self.get_graph_feature(x)).max(dim=-1, keepdim=False)[0]
        x2 = self.conv2(self.get_graph_feature(x1)).max(dim=-1)[0]
        x = torch.cat((x1, x2), dim=1)
        a = F.adaptive_max_pool1d(x, 1).view(batch_size, -1)
        b = F.adaptive_avg_pool1d(x, 1).view(batch_size, -1)
        return self.linear(torch.cat((a, b), 1))


class GraphConvolution(nn.Module):
    """Features times a dense adjacency matrix, which must be square and of the graph's size."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(torch.zeros(6, 8))
        self.w2 = nn.Parameter(torch.zeros(8, 3))

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        adj = adj + torch.eye(adj.size(0))
        degree = adj.sum(dim=1)
        norm = torch.diag(degree.pow(-0.5))
        adj = norm @ adj @ norm
        h = F.relu(adj @ (x @ self.w1))
        return F.log_softmax(torch.spmm(adj, torch.mm(h, self.w2)), dim=1)


def graph_accepts(n: int, rows: int, columns: int) -> bool:
    """Adding the identity of `rows` makes a single column square. A single row grows to [1, columns]
    likewise, but its norm is [1, 1], which that cannot be multiplied with.
    """
    square = rows == columns or columns == 1
    return square and n == rows


class MessagePassing(nn.Module):
    """Gathers nodes along edges and adds up the messages where they arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(10, 6)
        self.update = nn.GRUCell(6, 4)

    def forward(self, nodes: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        source, target = edge_index
        pairs = torch.cat([nodes[source], nodes[target], edge_attr], dim=-1)
        messages = F.relu(self.message(pairs))
        gathered = torch.zeros(nodes.size(0), 6).index_add_(0, target, messages)
        return self.update(gathered, nodes)


class SetTransformer(nn.Module):
    """Induced points pool a set, seeds pool the pools; a mean over the set beside it."""

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        self.inducing = nn.Parameter(torch.zeros(1, 3, dim))
        self.up = nn.Linear(5, dim)
        self.att = nn.MultiheadAttention(dim, 4, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.up(x)
        i = self.inducing.expand(x.size(0), -1, -1)
        h, _ = self.att(i, x, x)
        y, weights = self.att(x, h, h)
        return torch.cat([y.mean(1), x.mean(1)], -1), weights


class C3D(nn.Module):
    """Video clips, five pools as in the paper: 16 frames and 32 pixels at least, or what the last padding
    saves.
    """

    def __init__(self, width: int = 2):
        super().__init__()
        w = width
        self.features = nn.Sequential(
            nn.Conv3d(3, w, 3, padding=1),
            nn.MaxPool3d((1, 2, 2), (1, 2, 2)),
            nn.Conv3d(w, 2 * w, 3, padding=1),
            nn.MaxPool3d(2, 2),
            nn.Conv3d(2 * w, 4 * w, 3, padding=1),
            nn.MaxPool3d(2, 2),
            nn.Conv3d(4 * w, 8 * w, 3, padding=1),
            nn.MaxPool3d(2, 2),
            nn.Conv3d(8 * w, 8 * w, 3, padding=1),
            nn.MaxPool3d(2, 2, padding=(0, 1, 1)),
        )
        self.fc6 = nn.Linear(8 * w * 1 * 2 * 2, 8)
        self.fc8 = nn.Linear(8, 3)

    def forward(self, clip: Tensor) -> Tensor:
        x = self.features(clip)
        x = x.view(-1, 64)
        x = F.dropout(F.relu(self.fc6(x)), 0.5, self.training)
        return self.fc8(x)


def c3d_accepts(b: int, t: int, h: int, w: int) -> bool:
    """view(-1, 64) folds what does not fit into the batch: 16 channels times all cells must give whole rows
    of 64.
    """
    h, w = h // 16, w // 16
    cells = (t // 16) * (h // 2 + 1) * (w // 2 + 1)
    return t >= 16 and h >= 1 and w >= 1 and b * 16 * cells % 64 == 0


class FactorisedVideo(nn.Module):
    """Space first, then time: (2+1)D convolutions, frames folded into the batch and back."""

    def __init__(self) -> None:
        super().__init__()
        self.spatial = nn.Conv3d(3, 4, (1, 3, 3), padding=(0, 1, 1))
        self.temporal = nn.Conv3d(4, 4, (3, 1, 1), stride=(2, 1, 1))
        self.frame = nn.Conv2d(4, 6, 3, stride=2, padding=1)

    def forward(self, clip: Tensor) -> Tensor:
        x = F.relu(self.temporal(F.relu(self.spatial(clip))))
        b, c, t, h, w = x.shape
        x = x.transpose(1, 2).flatten(0, 1)
        x = self.frame(x).mean((-2, -1))
        return x.unflatten(0, (b, t)).amax(dim=1)


class TemporalShift(nn.Module):
    """Shifts a part of the channels along time; clips of eight segments come folded into the batch."""

    def __init__(self, segments: int = 8):
        super().__init__()
        self.n_segment = segments
        self.conv = nn.Conv2d(8, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        nt, c, h, w = x.size()
        n_batch = nt // self.n_segment
        x = x.view(n_batch, self.n_segment, c, h, w)
        fold = c // 4
        out = torch.zeros_like(x)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, 1:, fold : 2 * fold] = x[:, :-1, fold : 2 * fold]
        out[:, :, 2 * fold :] = x[:, :, 2 * fold :]
        return self.conv(out.view(nt, c, h, w))


class VNet(nn.Module):
    """Volumes: strided convolutions down, transposed ones up, residuals added with the input repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.inp = nn.Conv3d(1, 4, 5, padding=2)
        self.down = nn.Conv3d(4, 8, 2, stride=2)
        self.up = nn.ConvTranspose3d(8, 4, 2, stride=2)
        self.out = nn.Conv3d(8, 2, 1)

    def forward(self, volume: Tensor) -> Tensor:
        x = F.elu(self.inp(volume) + torch.cat([volume] * 4, 1))
        y = F.elu(self.down(x))
        y = self.out(torch.cat((self.up(y), x), 1))
        return F.softmax(y.permute(0, 2, 3, 4, 1).contiguous().view(-1, 2), dim=1)


CLOUD = "x: float32[b, 3, n]"

ENTRIES = (
    Entry("pointnet", lambda: PointNet().eval(), CLOUD, always, "proved", probe={"n": (1, 2, 50)}),
    Entry(
        "pointnet_training",
        PointNet,
        CLOUD,
        lambda b, n: b * n > 1,
        "refined",
        probe={"b": (1, 2, 3), "n": (1, 2, 3)},
    ),
    Entry(
        "dgcnn", DGCNN, CLOUD, lambda b, n: n >= 8, "refined", probe={"b": (1, 2, 3), "n": (1, 7, 8, 9, 20)}
    ),
    Entry(
        "graph_convolution",
        GraphConvolution,
        "x: float32[n, 6]; adj: float32[rows, columns]",
        graph_accepts,
        "refined",
        probe={"n": (1, 2, 3, 4), "rows": (1, 2, 3, 4), "columns": (1, 2, 3, 4)},
    ),
    Entry(
        "message_passing",
        MessagePassing,
        "nodes: float32[n, 4]; edge_index: int64[k, e]; edge_attr: float32[a, 2]",
        lambda n, k, e, a: k == 2 and e == a,
        "refined",
        ("e >= 0", "a >= 0"),
        probe={"n": (1, 2, 5), "k": (1, 2, 3), "e": (0, 1, 3), "a": (0, 1, 3)},
    ),
    Entry("set_transformer", SetTransformer, "x: float32[B, S, 5]", always, "proved", probe={"S": (1, 2, 9)}),
    Entry(
        "c3d",
        lambda: C3D().eval(),
        "clip: float32[b, 3, t, h, w]",
        c3d_accepts,
        "refined",
        probe={"b": (1, 2, 4), "t": (15, 16, 31, 32), "h": (15, 16, 31, 32, 47, 48), "w": (16, 32, 48)},
    ),
    Entry(
        "factorised_video",
        FactorisedVideo,
        "clip: float32[b, 3, t, h, w]",
        lambda b, t, h, w: t >= 3,
        "refined",
        probe={"t": (1, 2, 3, 4, 5), "h": (1, 4), "w": (1, 5)},
    ),
    Entry(
        "temporal_shift",
        TemporalShift,
        "x: float32[n, 8, h, w]",
        lambda n, h, w: n % 8 == 0,
        "refined",
        probe={"n": (1, 4, 7, 8, 9, 12, 16, 24), "h": (1, 3), "w": (1, 2)},
    ),
    Entry(
        "vnet",
        VNet,
        "volume: float32[b, 1, d, h, w]",
        lambda b, d, h, w: d % 2 == 0 and h % 2 == 0 and w % 2 == 0,
        "refined",
        probe={"b": (1, 2), "d": (1, 2, 3, 4), "h": (1, 2, 4, 5), "w": (2, 4)},
    ),
)
