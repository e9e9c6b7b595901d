/* The transfers of a program, for tests. */
#ifndef KILTER_TESTS_SUPPORT_TRANSFERS_H
#define KILTER_TESTS_SUPPORT_TRANSFERS_H

#include "sim/tasks/piece.h"
#include "sim/tasks/transfer.h"
#include "tests/test.h"

/* A transfer that is taken from those known is the one that would be made anew. Returns the
 * number of transfers that are taken. */
static inline uint32_t check_known_transfers(const Plan *plan, const Graph *graph,
                                             const ClusterView *view)
{
    g_autoptr(GError) error = NULL;
    SimParts *parts = sim_parts_new(plan, graph, &error);
    assert_no_error(error);
    g_autoptr(GPtrArray) known =
        g_ptr_array_new_with_free_func((GDestroyNotify)sim_transfer_free);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->program->n; i++) {
        const Instr *instr = &plan->program->instr[i];
        if (instr->kind != INSTR_TRANSFER)
            continue;
        g_autoptr(GPtrArray) none =
            g_ptr_array_new_with_free_func((GDestroyNotify)sim_transfer_free);
        const SimTransfer *fresh = sim_transfer_of(parts, view, instr, none),
                          *taken = sim_transfer_of(parts, view, instr, known);
        n++;
        assert_int_equal(taken->group, fresh->group);
        assert_int_equal(taken->to_group, fresh->to_group);
        assert_true(taken->latency_s == fresh->latency_s);
        assert_true(taken->byte_s == fresh->byte_s);
        assert_true(taken->shard_part == fresh->shard_part);
        assert_int_equal(taken->pieces->len, fresh->pieces->len);
        for (uint32_t k = 0; k < taken->pieces->len; k++) {
            const SimPiece *a = &g_array_index(taken->pieces, SimPiece, k),
                           *b = &g_array_index(fresh->pieces, SimPiece, k);
            assert_int_equal(a->from, b->from);
            assert_int_equal(a->to, b->to);
            assert_true(a->part == b->part);
        }
    }
    n -= known->len;
    sim_parts_free(parts);
    return n;
}

#endif
