"""Lessons: exercises that read what a learner wrote, and say what is wrong without saying what is
right.

    classroom.reveal("rankings-guess", guess)      # a prediction, compared with what the library finds
    classroom.check("rankings-1", answer)          # an exercise
    classroom.hint("rankings-1")                   # its first hint; classroom.hint("rankings-1", 2) is the second
    classroom.hide(explorer, "rankings-guess")     # hide a figure's verdicts until that prediction
    classroom.after("rankings-guess", show)        # calls show() after it
    classroom.export("answers.html", name="Ada")   # what was answered, as a page for the teacher

No answer is written down here: every one is computed by the library from the numbers that the
lesson shows. The lessons themselves are the notebooks in notebooks/lessons.
"""

from classroom.answer_sheet import export
from classroom.lesson import Feedback
from classroom.questions import LESSONS, after, check, hide, hint, reveal

__all__ = ["LESSONS", "Feedback", "after", "check", "export", "hide", "hint", "reveal"]
