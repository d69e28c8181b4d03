"""The JSON API: trials, rules, actions, the event stream, and their OpenAPI document."""
