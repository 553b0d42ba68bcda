"""The definitions of every verdict, vectorised: Arrow in, Arrow out, pure.

*Block*: the history and the acceptances of one range of coordinates of one lane in, findings and counts out. *Ids*: the
same for one set of ids, where a record knows nothing else. *Fold*: what crosses blocks. *Image*: the latest content of
each key. Spark, the connectors and `judge` only bring the two sides here; nothing else in the product decides what is
lost, premature or repeated.
"""

from workers.evidence.kernel.block import BlockVerdict, judge_block
from workers.evidence.kernel.fold import fold
from workers.evidence.kernel.image import image_mismatches
from workers.evidence.kernel.questions import LaneQuestion

__all__ = ["BlockVerdict", "LaneQuestion", "fold", "image_mismatches", "judge_block"]
