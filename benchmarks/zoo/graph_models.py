# ruff: noqa: C408  # options read as keyword arguments
"""`torch_geometric`: networks on graphs, given as node features and a list of edges."""

from __future__ import annotations

from typing import Any

from torch import nn

from .row import Row, build, make

GRAPH = "x: float32[n, 8]; edge_index: int64[2, e]"
SIZES = {"n": (1, 2, 3, 5, 9), "e": (1, 2, 3, 5, 9)}
BASIC: dict[str, Any] = dict(in_channels=8, hidden_channels=16, num_layers=2, out_channels=4)
CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "ChebConv": dict(K=2),
    "TAGConv": {},
    "GATv2Conv": dict(heads=2),
    "TransformerConv": dict(heads=2),
    "SGConv": {},
    "ARMAConv": {},
    "LEConv": {},
    "ClusterGCNConv": {},
    "GraphConv": {},
    "SuperGATConv": dict(heads=2),
    "FiLMConv": {},
    "FeaStConv": {},
    "MFConv": {},
}


def convolution(name: str, options: dict[str, Any]) -> Row:
    factory = build(f"torch_geometric.nn:{name}", 8, 4, **options)
    return Row(f"pyg_{name.lower()}", "torch_geometric", factory, GRAPH, SIZES)


def pna() -> nn.Module:
    import torch

    return make(
        "torch_geometric.nn:PNA",
        **BASIC,
        aggregators=["mean", "max"],
        scalers=["identity"],
        deg=torch.ones(4),
    )


ROWS = (
    *(
        Row(
            f"pyg_{name.lower()}",
            "torch_geometric",
            build(f"torch_geometric.nn:{name}", **BASIC),
            GRAPH,
            SIZES,
        )
        for name in ("GCN", "GraphSAGE", "GIN", "GAT", "EdgeCNN")
    ),
    Row("pyg_pna", "torch_geometric", pna, GRAPH, SIZES),
    *(convolution(name, options) for name, options in CONVOLUTIONS.items()),
    Row(
        "pyg_graph_unet",
        "torch_geometric",
        build("torch_geometric.nn:GraphUNet", 8, 16, 4, depth=2),
        GRAPH,
        SIZES,
    ),
    Row(
        "pyg_attentive_fp",
        "torch_geometric",
        build("torch_geometric.nn:AttentiveFP", 8, 16, 4, edge_dim=3, num_layers=2, num_timesteps=2),
        "x: float32[n, 8]; edge_index: int64[2, e]; edge_attr: float32[e, 3]; batch: int64[n]",
        SIZES,
    ),
    Row("pyg_mlp", "torch_geometric", build("torch_geometric.nn:MLP", [8, 16, 4]), "x: float32[n, 8]", SIZES),
)
