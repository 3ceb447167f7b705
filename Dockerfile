# The commands of the README in a container: `docker build -t softgeom .`, then `docker run --rm softgeom scan ppocr-v4`.
# With Dask, so that the same image is scheduler, worker and client of a cluster (docs/howto.md).
FROM python:3.13-slim
WORKDIR /softgeom
COPY . .
RUN pip install --no-cache-dir ".[dask]"
WORKDIR /results
ENTRYPOINT ["softgeom"]
