"""Job definitions: rules as SageMaker's requests and classes describe them, made into rule jobs."""
