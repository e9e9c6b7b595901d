# docker build -t kilter . && docker run --rm -v "$PWD:/work" kilter plan vgg19 hap-32
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN ./run setup && cmake --preset release -G Ninja -DBUILD_TESTING=OFF && cmake --build build && cmake --install build --prefix /opt/kilter

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libglib2.0-0 libglpk40 libgsl27 libsqlite3-0 libmetis5 libexpat1 libprotobuf-c1 \
    libcyaml1 libyaml-0-2 libjansson4 zlib1g libopenmpi3 libopenblas0 openmpi-bin gnuplot-nox fonts-dejavu-core && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/kilter /opt/kilter
ENV PATH=/opt/kilter/bin:$PATH
WORKDIR /work
ENTRYPOINT ["kilter"]
