# The demo in a container: docker build -t dpcipher . && docker run --rm -v "$PWD/out:/out" dpcipher demo -o /out/demo
FROM python:3.12-slim

COPY . /source
RUN python -m pip install --no-cache-dir --constraint /source/constraints.txt /source \
 && rm -rf /source \
 && useradd --create-home --uid 1000 curator \
 && mkdir /out \
 && chown curator /out

USER curator
WORKDIR /out
ENTRYPOINT ["dpcipher"]
CMD ["demo", "-o", "/out/demo"]
