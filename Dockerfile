# Two images from one wheel:
#   docker build --target light -t rllib-compat:light .   reads, converts to msgpack, acts; no Ray
#   docker build --target full -t rllib-compat .          all of it, with torch for the CPU
#   docker run --rm -v "$PWD:/work" rllib-compat:light inspect old/checkpoint-100
FROM python:3.12-slim AS wheel
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel

FROM python:3.12-slim AS light
COPY --from=wheel /source/dist/*.whl /tmp/
RUN pip install --no-cache-dir /tmp/*.whl && rm /tmp/*.whl && useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["rllib-compat"]

FROM python:3.12-slim AS full
COPY --from=wheel /source/dist/*.whl /source/constraints.txt /tmp/
RUN pip install --no-cache-dir -c /tmp/constraints.txt \
    --extra-index-url https://download.pytorch.org/whl/cpu "$(ls /tmp/*.whl)[all]" \
    && rm /tmp/*.whl /tmp/constraints.txt && useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["rllib-compat"]
