"""Text and labelled reviews, each from the first of three places that has it: local folder, hub,
embedded stand-in, which is never silent: a `Source` says so on every figure and result.
"""

from compendium.corpora.reviews import PLANTED_WORDS as PLANTED_WORDS
from compendium.corpora.reviews import Reviews as Reviews
from compendium.corpora.reviews import load_reviews as load_reviews
from compendium.corpora.reviews import load_valences as load_valences
from compendium.corpora.text import Text as Text
from compendium.corpora.text import load_text as load_text
from softgeom.source import Source as Source
from softgeom.source import hub_reachable as hub_reachable
