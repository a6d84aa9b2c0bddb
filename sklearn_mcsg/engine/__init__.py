"""The engine: a likelihood under a criterion, for all pairs of groups, by blocks and on several workers.

comparison   criteria of groups and of their unions, prepared and compared
dispatch     which engine fits the unions of all pairs: NumPy, or compiled code
outputs      what is returned for a pair, and the facts about each output
blocks       how much of a matrix is computed at a time
parallel     blocks on the active joblib backend, with progress bars
learnt       what an estimator has learnt from a corpus, as one plain object
"""
