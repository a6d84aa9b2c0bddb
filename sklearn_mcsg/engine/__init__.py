"""Engine: compares groups, all pairs or row by row, in blocks and on several workers.

In come statistics of groups, a likelihood and a criterion; out go the values of an output.
`Comparison` says how groups are compared, and `Comparer` keeps the groups beside it: uses take that object.

    model         statistics of groups, pseudo-vectors, and the criterion of each group
    capabilities  what a likelihood and a criterion can do together
    outputs       the values that can be returned for a pair, with the facts about each
    prepared      groups in the form that is compared
    dispatch      which engine fits the unions of all pairs: NumPy, compiled code, or arrays on a device
    pairs         all pairs, in blocks of a matrix, and pairs row by row
    parallel, results              jobs and progress bars, precision
    comparison, comparer           how groups are compared; the same with the groups that are kept
    coordinates, cosine            groups as points, and cosines of these
    chance, permutations           random pairs, and random divisions of two groups
"""
