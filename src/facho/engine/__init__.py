"""Decides what is due, who runs it, how hard an OLT may be asked, and what changed.

Standard library only, and no clock of its own: time is an argument or comes
from the `Clock` port. That is what lets a day of polling be tested in seconds.
"""
