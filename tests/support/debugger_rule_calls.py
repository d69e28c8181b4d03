"""Calls of debugging rules, their actions, collections and hooks."""

from collections.abc import Iterator

DEBUG_RULES = [
    *("all_zero", "check_input_images", "class_imbalance", "confusion", "create_xgboost_report"),
    *("dead_relu", "exploding_tensor", "feature_importance_overweight", "loss_not_decreasing"),
    *("nlp_sequence_ratio", "overfit", "overtraining", "poor_weight_initialization"),
    *("saturated_activation", "similar_across_runs", "stalled_training_rule", "tensor_variance"),
    *("tree_depth", "unchanged_tensor", "vanishing_gradient", "weight_update_ratio"),
]
COLLECTIONS = [
    *("'a'", "'a', None", "'a', {}", "'a', {'b': 'c'}", "'a', {'b': 1, 'c': [2]}", "None"),
    *("name='a', parameters={'c': 1, 'b': 2}", "", "'a', {}, {}"),
]
COMPARED = [
    *("CollectionConfig('a') == CollectionConfig('a')",),
    *("CollectionConfig('a') == CollectionConfig('a', {})",),
    *("CollectionConfig('a') != CollectionConfig('b')",),
    *("CollectionConfig('a', {'b': 1, 'c': 2}) == CollectionConfig('a', {'c': 2, 'b': 1})",),
    *("CollectionConfig('a') == None", "CollectionConfig('a') != 'a'"),
    *("CollectionConfig('a') in [1]",),
    *("hash(CollectionConfig('a')) == hash(CollectionConfig('a', {}))",),
    *("hash(CollectionConfig('a', {'b': []}))", "hash(CollectionConfig([]))"),
    *("len({CollectionConfig('a', {'b': 1}), CollectionConfig('a', {'b': 1})})",),
    *("StepRange(1, 2) == StepRange(1, 2)", "DebuggerHookConfig() == DebuggerHookConfig()"),
    *("Rule(1, 2, 3, 4, 5, 6, {}, []) == Rule(1, 2, 3, 4, 5, 6, {}, [7])",),
    *("Rule(1, 2, 3, 4, 5, 6, {}, [])", "issubclass(ProfilerRule, RuleBase)"),
]
HOOKS = [
    *("", "'s3://b'", "'s3://b', '/l', {'a': 'b'}, []", "hook_parameters={}"),
    *("collection_configs=[CollectionConfig('a'), CollectionConfig('b', {'c': 'd'})]",),
    *("container_local_output_path=''", "collection_configs=['a']", "collection_configs=3"),
]
BOARDS = ["'s3://b'", "'s3://b', '/l'", "''", "None, ''", "", "container_local_output_path='l'"]
DEAD_RELU = "rule_configs.dead_relu()"
STOP = "rule_configs.StopTraining()"
BUILT_IN = [
    *("name='n'", "name=''", "container_local_output_path='l', s3_output_path='s'"),
    *("other_trials_s3_input_paths=['x', 'y']", "other_trials_s3_input_paths=[]"),
    *("other_trials_s3_input_paths='xy'", "other_trials_s3_input_paths=3"),
    *("rule_parameters={}", "rule_parameters={'threshold': '1'}", "rule_parameters={'a': 1}"),
    *("rule_parameters={'rule_to_invoke': None}", "rule_parameters={'rule_to_invoke': 'x'}"),
    *("rule_parameters={'rule_to_invoke': ''}", "rule_parameters='x'"),
    *("rule_parameters={'other_trial_0': 'z'}, other_trials_s3_input_paths=['x']",),
    *("collections_to_save=[]", "collections_to_save=[CollectionConfig('a')]"),
    *("actions=[]", "actions='x'", f"actions=[{STOP}]", f"actions={STOP}"),
    *("actions=rule_configs.ActionList()", "instance_type='x'", "image_uri='x'"),
]
BASES = [
    *("None", "{}", "[]", "3", "{'DebugRuleConfiguration': {}}"),
    *("{'DebugRuleConfiguration': None}", "rule_configs.ProfilerReport()", ""),
    *("{'DebugRuleConfiguration': {'RuleConfigurationName': 'X'}}",),
    *("{'DebugRuleConfiguration': {'RuleParameters': {'a': 'b'}}}",),
    *("{'DebugRuleConfiguration': {}, 'CollectionConfigurations': [{}]}",),
]
CUSTOM = [
    *("", "source='s', rule_to_invoke='R'", "source='', rule_to_invoke=''", "source='s'"),
    *("rule_to_invoke='R'", "source='', rule_to_invoke='R'", "'s', 'R', 'l', 's3'"),
    *("source='s', rule_to_invoke='R', rule_parameters={'a': None, 'b': True, 'c': [1], 'd': ''}",),
    *("source='s', rule_to_invoke='R', rule_parameters={'rule_to_invoke': 'Q'}",),
    *("source='s', rule_to_invoke='R', rule_parameters={'source_s3_uri': 't'}",),
    *("source='s', rule_to_invoke='R', container_local_output_path='l', s3_output_path=''",),
]
WRONG = ["''", "'x'", "[]", "['a']", "['ab']", "[('a', 'b')]", "{'a'}", "3", "0", "False", "b''"]
CUSTOM_DEBUG = [
    *("source='s', rule_to_invoke='R', other_trials_s3_input_paths=['x', 'y']",),
    *("source='s', rule_to_invoke='R', collections_to_save=[CollectionConfig('a')]",),
    *("source='s', rule_to_invoke='R', actions=[1]", f"actions={STOP}"),
]
PREPARED = [
    *("None", STOP, "rule_configs.StopTraining('own')", "rule_configs.ActionList()"),
    *(f"rule_configs.ActionList({STOP}, rule_configs.Email('a@b.co'), rule_configs.SMS('+1'))",),
    *(f"rule_configs.ActionList({STOP}, rule_configs.StopTraining('own'))",),
]
ACTIONS = [
    *("StopTraining()", "StopTraining(None)", "StopTraining('a-B-9')", "StopTraining('')"),
    *("StopTraining(3)", "StopTraining('a_b')", "StopTraining('a b')", "StopTraining('é')"),
    *("Email('a1@b.co')", "Email('a@é_1.com')", "Email('a.b@c.de')", "Email('A@b.co')"),
    *("Email('a@b.c.de')", "Email('a@b.info')", "Email('a@b')", "Email('')", "Email(3)"),
    *("Email(None)", "Email()", "SMS('+1')", "SMS('+123456789012345')", "SMS('+')", "SMS()"),
    *("SMS('+1234567890123456')", "SMS('1')", "SMS('+1 2')", "SMS('+a')", "SMS(1)", "SMS(None)"),
    *("ActionList()", "ActionList(rule_configs.SMS('+1'))", "ActionList(3)"),
    *("ActionList(rule_configs.SMS('+1'), rule_configs.StopTraining('a'))", "ActionList(None)"),
    *("ActionList([rule_configs.SMS('+1')])", "ActionList(rule_configs.ActionList())"),
]


def debugging_rules() -> Iterator[str]:
    """Yield calls of rules that judge tensors."""
    for rule in DEBUG_RULES:
        yield f"rule_configs.{rule}()"
        yield f"prepared(Rule.sagemaker(rule_configs.{rule}()))"
    for one in BUILT_IN:
        yield f"Rule.sagemaker({DEAD_RELU}, {one}).to_debugger_rule_config_dict()"
    for one in BASES:
        yield f"Rule.sagemaker({one}).to_debugger_rule_config_dict()"
    for one in [*BUILT_IN[15:17], "name='n'"]:
        rule = f"Rule.sagemaker({DEAD_RELU}, {one})"
        yield f"[one._to_request_dict() for one in {rule}.collection_configs]"
    for one in CUSTOM + CUSTOM_DEBUG:
        yield f"Rule.custom('n', 'i', 't', 3, {one}).to_debugger_rule_config_dict()"
        yield f"len(Rule.custom('n', 'i', 't', 0, {one}).collection_configs)"
    for one in WRONG:
        yield f"Rule.sagemaker({DEAD_RELU}, rule_parameters={one}).rule_parameters"
        yield f"Rule.sagemaker({DEAD_RELU}, other_trials_s3_input_paths={one}).rule_parameters"
        yield f"Rule.custom('n', 'i', 't', 3, rule_parameters={one}).rule_parameters"
        yield f"Rule.custom('n', 'i', 't', 3, 's', 'R', rule_parameters={one}).rule_parameters"
        yield f"ProfilerRule.custom('n', 'i', 't', 3, rule_parameters={one}).rule_parameters"
    for one in PREPARED:
        yield f"prepared(Rule.sagemaker({DEAD_RELU}, actions={one}))"
        yield f"prepared(Rule.custom('n', 'i', 't', 3, 's', 'R', actions={one}), 3)"
    for one in ACTIONS:
        yield f"rule_configs.{one}.serialize()"


def saving() -> Iterator[str]:
    """Yield calls of what says which tensors are saved."""
    yield from (f"CollectionConfig({one})._to_request_dict()" for one in COLLECTIONS)
    yield from COMPARED
    yield from (f"DebuggerHookConfig({one})._to_request_dict()" for one in HOOKS)
    yield from (f"TensorBoardOutputConfig({one})._to_request_dict()" for one in BOARDS)
