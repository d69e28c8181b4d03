"""TreeDepth against a slow version that follows each leaf up to its root."""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from judging import judge, save
from trees import table

from builtin_rules import TreeDepth

Tree = dict[int, Sequence[int]]
WORKERS = ("worker_0", "worker_1")


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Return a tree that grew at random leaves; its ids have gaps, as after pruning."""
    names = draw(st.lists(st.integers(0, 200), min_size=21, max_size=21, unique=True))
    nodes: Tree = {names[0]: ()}
    for split in range(draw(st.integers(0, 10))):
        leaves = [node for node, children in nodes.items() if not children]
        children = (names[2 * split + 1], names[2 * split + 2])
        nodes[draw(st.sampled_from(leaves))] = children
        nodes |= dict.fromkeys(children, ())
    order = draw(st.permutations(list(nodes)))
    return {node: nodes[node] for node in order}


def depth_of(tree: Tree) -> int:
    above = {child: node for node, children in tree.items() for child in children}
    depths = []
    for node in tree:
        levels, at = 0, node
        while at in above:
            levels, at = levels + 1, above[at]
        depths.append(levels)
    return max(depths)


@given(
    st.lists(st.lists(trees(), min_size=1, max_size=3), min_size=1, max_size=2),
    st.sampled_from([1, 2.5, 4]),
    st.booleans(),
)
def test_tree_depth(workers: list[list[Tree]], limit: float, literal: bool) -> None:
    expected = {}
    for name, of_one in zip(WORKERS, workers, strict=False):
        largest = max(node for tree in of_one for node in tree)
        depth = max(map(depth_of, of_one))
        found = math.floor(math.log2(largest + 1)) if literal else depth
        if found > limit:
            expected[name] = found
    with tempfile.TemporaryDirectory() as folder:
        for name, of_one in zip(WORKERS, workers, strict=False):
            save(Path(folder), {3: table(*of_one)}, worker=name, num_workers=len(workers))
        findings = judge(TreeDepth, Path(folder), depth=limit, literal=literal).findings
    assert {str(one.worker): one.measured for one in findings} == expected
