# ruff: noqa: C408  # options read as keyword arguments
"""`pytorchcv`: classifiers, segmentation, poses and speech, by the names of its model provider."""

from __future__ import annotations

from typing import Any

from .row import AROUND_32, IMAGE, Row, build, sides

FOR_224 = """
alexnet zfnet bninception resnet10 preresnet10 seresnet10 airnet50_1x64d_r2 bam_resnet18 cbam_resnet18
scnet50 diaresnet10 diracnet18v2 sharesnet18 condensenet74_c4_g4 peleenet dpn68 darknet_ref channelnet dla34
espnetv2_wd2 vovnet27s selecsls42 hardnet39ds squeezenet_v1_0 squeezeresnet_v1_0 sqnxt23_w1 shufflenet_g1_w1
shufflenetv2_wd2 menet108_8x1_g3 mobilenet_wd4 fdmobilenet_wd4 igcv3_wd4 ghostnet proxylessnas_cpu fbnet_cb
mixnet_s octresnet10_ad2
""".split()
ANY_SIZE = """
resnestabc14 regnetx002 dicenet_wd5 efficientnet_b0 nin_cifar10 rir_cifar10 wrn16_10_cifar10 ror3_56_cifar10
isqrtcovresnet18 resnetd50b
""".split()
DENSE: dict[str, dict[str, Any]] = {
    name: dict(in_size=(64, 64))
    for name in """
    fastscnn_cityscapes cgnet_cityscapes dabnet_cityscapes fpenet_cityscapes lednet_cityscapes
    esnet_cityscapes edanet_cityscapes enet_cityscapes erfnet_cityscapes linknet_cityscapes segnet_cityscapes
    unet_cityscapes bisenet_resnet18_celebamaskhq
    """.split()
}
OTHERS = (
    ("lwopenpose2d_mobilenet_cmupan_coco", IMAGE),
    ("simplepose_resnet18_coco", IMAGE),
    ("centernet_resnet18_voc", IMAGE),
    ("superpointnet", "x: float32[b, 1, h, w]"),
)


def provided(name: str, inputs: str, *sizes: int, **options: Any) -> Row:
    factory = build("pytorchcv.model_provider:get_model", name, **options)
    return Row(f"cv_{name}", "pytorchcv", factory, inputs, sides(*sizes))


ROWS = (
    *(provided(name, IMAGE, 64, 192, 193, 224, 225) for name in FOR_224),
    *(provided(name, IMAGE, *AROUND_32["h"]) for name in ANY_SIZE),
    *(provided(name, IMAGE, 32, 48, 63, 64, 65, 96, **options) for name, options in DENSE.items()),
    *(provided(name, inputs, 32, 48, 63, 64, 65) for name, inputs in OTHERS),
)
