"""The engine: compares all pairs of groups by a likelihood and a criterion, in blocks and on several workers.

comparison   criteria of groups and of their unions, prepared and compared
dispatch     which engine fits the unions of all pairs: NumPy, or compiled code
outputs      the values that can be returned for a pair, and their properties
blocks       the blocks of a matrix, limited by the working memory
parallel     blocks on the active joblib backend, with progress bars
learnt       the state that an estimator has learnt from a corpus, as one plain object
coordinates  coordinates of groups in which a comparison is a distance, and their principal axes
"""
