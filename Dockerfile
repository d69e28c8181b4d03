# rule-runner with its service as an image: a virtual environment, for any ordinary user.
# The base needs Python >= 3.11 with its venv module as python3; docs/image.md says how to pin it,
# and what VARIANT=full adds.
ARG BASE_IMAGE=python:3.11-slim

# The wheel of rule-runner. Its stage has the compiler of the extension that measures tensors, so that
# no other has one; where none can be installed, numpy measures tensors, only slower.
FROM ${BASE_IMAGE} AS wheel
ARG PIP_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
RUN { headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))') \
        && apt-get update -qq \
        && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends gcc libc6-dev $([ -e "$headers/Python.h" ] || echo libpython3-dev); \
    } >apt.log 2>&1 || { tail -n 3 apt.log; echo "No compiler can be installed: the image measures tensors with numpy, which is slower."; } >&2
COPY uv.lock ./
COPY scripts/requirements scripts/
RUN python3 -m venv tools \
    && python3 scripts/requirements build >build.txt \
    && tools/bin/pip install --quiet --no-deps --require-hashes --requirement build.txt
COPY setup.py pyproject.toml README.md LICENSE ./
COPY rule_core rule_core
COPY smdebug smdebug
COPY builtin_rules builtin_rules
COPY rule_runner rule_runner
RUN tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

FROM ${BASE_IMAGE} AS builder
ARG PIP_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
# The AWS services that rule-runner calls, and those that boto3 needs for credentials; `full` has all.
ENV SERVICES="cloudwatch ecr events logs s3 sagemaker signin sns sqs sso sso-oidc sts"
WORKDIR /build
COPY uv.lock ./
COPY scripts/requirements scripts/
RUN python3 -m venv tools \
    && python3 scripts/requirements rule-runner serve >serve.txt \
    && python3 scripts/requirements rule-runner profiler >profiler.txt \
    && python3 -m venv --without-pip /opt/rule-runner \
    && tools/bin/pip --python /opt/rule-runner/bin/python install --quiet --no-compile --no-deps --require-hashes --requirement serve.txt \
    && find /opt/rule-runner/lib -type d -name tests -prune -exec rm -rf {} + \
    && mkdir services && cd /opt/rule-runner/lib/python3*/site-packages/botocore/data \
    && for service in */; do case " $SERVICES " in *" ${service%/} "*) ;; *) mv "$service" /build/services/ ;; esac; done \
    && /opt/rule-runner/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/rule-runner/lib
COPY --from=wheel /build/dist dist
RUN tools/bin/pip --python /opt/rule-runner/bin/python install --quiet --no-compile --no-deps --no-index dist/*.whl \
    && /opt/rule-runner/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/rule-runner/lib
# The additions of `full`; its layers are those of `slim` and one more.
ARG VARIANT=slim
COPY scripts/sbom ./
RUN mkdir extras \
    && case "$VARIANT" in \
        slim) ;; \
        full) tools/bin/pip --python /opt/rule-runner/bin/python install --quiet --no-compile --prefix /build/extras --no-deps --require-hashes --requirement profiler.txt \
            && cd extras/lib/python3*/site-packages && mkdir -p botocore/data && mv /build/services/* botocore/data/ && cd /build \
            && find extras/lib -type d -name tests -prune -exec rm -rf {} + \
            && /opt/rule-runner/bin/python -m compileall -q -j 0 -s /build/extras -p /opt/rule-runner --invalidation-mode unchecked-hash extras/lib ;; \
        *) echo "VARIANT must be slim or full, got '$VARIANT'." >&2; exit 1 ;; \
    esac \
    && python3 sbom /opt/rule-runner extras >sbom.cdx.json

FROM ${BASE_IMAGE}
# The version, the revision and where they come from are labels that scripts/build_image adds.
LABEL org.opencontainers.image.title="rule-runner" \
      org.opencontainers.image.description="Evaluates rules over the tensors that a training job saved." \
      org.opencontainers.image.licenses="Apache-2.0"
# The base's own pip goes where there is one; the folders of the contract are anybody's to write.
RUN (python3 -m pip uninstall --quiet --yes pip setuptools wheel 2>/dev/null || true) \
    && mkdir -p /opt/ml/output /opt/ml/processing/output/rule \
    && chmod 1777 /opt/ml/output /opt/ml/processing/output/rule
COPY --from=builder /opt/rule-runner /opt/rule-runner
ENV PATH=/opt/rule-runner/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /opt/ml/processing/output/rule
# There is no USER: platforms mount output folders that only root may write to. As root, the entry
# point gives them to user 1000 and becomes that user for good; as another user it changes nothing.
# There is no HEALTHCHECK: most commands are jobs that end with an exit code. docs/image.md has one for `serve`.
# Signals are blocked before anything is imported: the first process of a container would lose them.
ENTRYPOINT ["/opt/rule-runner/bin/python", "-I", "-c", "import _signal; _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTERM, _signal.SIGINT)); from rule_runner.containers.entry_point import main; main()"]
COPY --from=builder /build/extras /opt/rule-runner
COPY --from=builder /build/sbom.cdx.json /usr/share/doc/rule-runner/sbom.cdx.json
ARG VARIANT=slim
LABEL rule-runner.variant=$VARIANT
