"""The own encoder of a static model: the mean of the vectors of its tokens, over a whole text."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy import sparse
from sklearn.preprocessing import FunctionTransformer
from tfidf import Cosine
from tokenizers import Tokenizer


def files_of(source):
    """Tokenizer and vectors of a folder, or of the installed WordLlama."""
    if source != "wordllama":
        return source / "tokenizer.json", next(source.glob("*.safetensors"))
    folder = Path(find_spec("wordllama").origin).parent
    return folder / "tokenizers/l2_supercat_tokenizer_config.json", folder / "weights/l2_supercat_256.safetensors"


def own_encoder(source):
    """Cosine of mean token vectors."""
    tokenizer_file, vectors_file = files_of(source)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = next(array for array in load_file(vectors_file).values() if array.ndim == 2).astype(np.float32)

    def encode(texts):
        ids = [encoding.ids for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        ends = np.cumsum([0, *map(len, ids)])
        counts = sparse.csr_array((np.ones(ends[-1], np.float32), np.concatenate(ids), ends), (len(ids), len(table)))
        return counts @ table / np.maximum(np.diff(ends), 1)[:, None]

    return Cosine(FunctionTransformer(encode))
