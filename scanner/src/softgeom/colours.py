"""The palette of figures and explorers: Okabe and Ito (2008), which people with the usual
colour-vision deficiencies tell apart.
"""

BLUE, ORANGE, GREEN, RED, SKY, PURPLE, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000",
)  # fmt: skip
COLOURS = [BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK]
GREY = "#7A7A7A"
