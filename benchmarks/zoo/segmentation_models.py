# options read as keyword arguments
"""`segmentation_models_pytorch`: decoders of segmentation, each on a small encoder."""

from __future__ import annotations

from .row import IMAGE, Row, build, sides

DECODERS = "Unet UnetPlusPlus MAnet Linknet FPN PSPNet PAN DeepLabV3 DeepLabV3Plus UPerNet Segformer".split()
ENCODERS = "mobilenet_v2 efficientnet-b0 vgg11 densenet121 mit_b0".split()
AROUND_64 = sides(1, 31, 32, 33, 64, 96, 128)


def segmenter(decoder: str, encoder: str) -> Row:
    factory = build(
        f"segmentation_models_pytorch:{decoder}", encoder, encoder_weights=None, in_channels=3, classes=2
    )
    return Row(f"smp_{decoder.lower()}_{encoder}", "segmentation_models_pytorch", factory, IMAGE, AROUND_64)


ROWS = (
    *(segmenter(decoder, "resnet18") for decoder in DECODERS),
    *(segmenter("Unet", encoder) for encoder in ENCODERS),
)
