"""MessageAction: sends an e-mail or a text message through the SNS topic of debugger rules."""

from rule_core.rules.actions.message import MessageAction as MessageAction
