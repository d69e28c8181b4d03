"""PositionedYaml: a YAML document with the place of each of its values in the text."""

from dataclasses import dataclass, field
from typing import Any

import yaml

from rule_runner.config.job_file.json_yaml import NODES

Path = tuple[str | int, ...]


class YamlError(ValueError):
    """A text is not the YAML that is needed: a sentence without the full stop, and the line."""

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


@dataclass(slots=True)
class PositionedYaml:
    """The value of a YAML text; all scalars are texts, as they are written.

    Attributes
    ----------
    lines
        The line of each key and list item, by its path; the first line is 1.
    nodes
        The node of each value.
    keys
        The node of each key.
    """

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    nodes: dict[Path, yaml.Node] = field(default_factory=dict)
    keys: dict[Path, yaml.Node] = field(default_factory=dict)


def read_yaml(text: str) -> PositionedYaml:
    """Read a document.

    Raises
    ------
    YamlError
        If it does not parse, is empty, has a key twice, or stands for more than `NODES` values.
    """
    document = PositionedYaml()
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
        if root is not None:
            document.value = _value(root, (), document)
            return document
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        msg = str(err.problem or err.context)
        raise YamlError(msg, mark.line + 1 if mark else 0) from err
    except yaml.YAMLError as err:
        msg = str(getattr(err, "reason", "") or err).rstrip(".")
        raise YamlError(msg) from err
    except RecursionError as err:
        msg = "it is nested too deeply"
        raise YamlError(msg) from err
    msg = "the file is empty"
    raise YamlError(msg)


def _value(node: yaml.Node, path: Path, document: PositionedYaml) -> Any:
    if len(document.nodes) >= NODES:  # an alias counts as all that it stands for
        msg = f"it expands to more than {NODES:,} values"
        raise YamlError(msg)
    document.nodes[path] = node
    document.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), document) for index, item in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    mapping: dict[str, Any] = {}
    for key, item in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            msg = "a key must be text"
            raise YamlError(msg, line)
        if key.value in mapping:
            msg = f"key {key.value!r} occurs twice"
            raise YamlError(msg, line)
        place = (*path, key.value)
        document.lines[place] = line
        document.keys[place] = key
        mapping[key.value] = _value(item, place, document)
    return mapping


def end_of(node: yaml.Node) -> int:
    """Return the index in the text behind a value, without the comments that follow it."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return end_of(last[1] if isinstance(node, yaml.MappingNode) else last)
