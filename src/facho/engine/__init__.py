"""The engine: scheduling, collection, quotas, forecast and brand detection.

Standard library only, and no clock of its own: time is an argument or comes from the `Clock` port, so tests run a day
of polling in seconds.
"""
