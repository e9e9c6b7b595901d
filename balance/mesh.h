/* Partitions of a mesh by METIS, whose quirks live in mesh.c alone. Private to balance. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"

typedef struct Mesh Mesh;

/* Vertices 0 to n_vertices - 1. */
Mesh *mesh_new(uint32_t n_vertices);
AUTOPTR(mesh_free, Mesh)

/* Adds weight to the edge between two vertices; an edge from a vertex to itself is ignored. */
void mesh_edge(Mesh *mesh, uint32_t a, uint32_t b, double weight);

/* Cuts few edges by weight into parts of about equal weight of vertices; the largest may have
 * `imbalance` times the average (0: METIS's default). part: out, [vertex]; parts may be empty.
 * KILTER_ERROR_FAILED if METIS fails. */
bool mesh_partition(const Mesh *mesh, const double *weight, uint32_t n_parts,
                    double imbalance, uint32_t *part, GError **error);

/* The same by METIS's bisections, one after the other, for any number of parts up to that of the
 * vertices: no part is empty. METIS's own cut into many parts loses vertices of uneven weight, and
 * prints that it does. */
bool mesh_bisect(const Mesh *mesh, const double *weight, uint32_t n_parts,
                 double imbalance, uint32_t *part, GError **error);
