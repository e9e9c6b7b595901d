/* Times of ops, sums and transfers, each computed once. */
#include "sim/tasks/quick_parts.h"

#include <math.h>

double quick_op_s(SimQuick *q, const Instr *instr, const SimGroupTeams *lanes, uint32_t k)
{
    double **of = &q->op_s[instr->group];
    const size_t n = (size_t)graph_n_ops(q->graph) * lanes->n_lanes;
    if (!*of) {
        *of = g_new(double, n + 1);
        for (size_t i = 0; i < n; i++)
            (*of)[i] = NAN;
    }
    double *s = &(*of)[(size_t)instr->op * lanes->n_lanes + k];
    if (isnan(*s))
        *s = sim_part_s(q->parts, q->view, instr, &q->rule[instr->op], lanes->place[k],
                        false);
    return *s;
}

double quick_bytes(const SimQuick *q, TensorId tensor)
{
    return (double)tensor_bytes(graph_tensor(q->graph, tensor));
}

static double team_sum_s(const SimQuick *q, const SimTeam *team, double bytes)
{
    return sim_collective_over(
        sim_team_line(q->view, team, COLLECTIVE_ALL_REDUCE, bytes, NULL), team->n,
        COLLECTIVE_ALL_REDUCE, bytes, 0, 0);
}

/* The least seconds a byte of a sum of no more than all bytes. A line's are least at its end. */
static double least_byte_s(const SimQuick *q, const SimTeam *team)
{
    const CollectivePieces *pieces = &q->view->pieces[COLLECTIVE_ALL_REDUCE];
    double all = 1;
    for (TensorId t = 0; t < q->n_tensors; t++)
        if (graph_tensor(q->graph, t)->role == ROLE_PARAMETER)
            all += quick_bytes(q, t);
    double least = team_sum_s(q, team, all) / all;
    for (uint32_t p = 0; p < pieces->n; p++)
        least = MIN(least,
                    team_sum_s(q, team, pieces->piece[p].up_to) / pieces->piece[p].up_to);
    return least;
}

double quick_sum_s(SimQuick *q, const Instr *instr)
{
    double **of = &q->sum_s[instr->group];
    const SimTeam *team =
        &q->teams->team[q->teams->group[instr->group].first[AXIS_REPLICAS]];
    if (!*of) {
        const double byte_s = q->sums == SIM_SUMS_FUSED ? least_byte_s(q, team) : 0;
        *of = g_new(double, q->n_tensors + 1);
        for (uint32_t t = 0; t < q->n_tensors; t++)
            (*of)[t] =
                q->sums == SIM_SUMS_EACH || (q->sums == SIM_SUMS_FUSED &&
                                             !graph_is_parameter_gradient(q->graph, t))
                    ? NAN
                    : byte_s * quick_bytes(q, t);
    }
    double *s = &(*of)[instr->tensor];
    if (isnan(*s))
        *s = team_sum_s(q, team, quick_bytes(q, instr->tensor));
    return *s;
}

double quick_server_s(SimQuick *q, const Instr *instr, bool back)
{
    double **of = &q->server_s[instr->group];
    const SimTeam *team =
        &q->teams->team[q->teams->group[instr->group].first[AXIS_REPLICAS]];
    if (!*of) {
        *of = g_new(double, 4 * (size_t)team->n);
        for (uint32_t i = 0; i < 4 * team->n; i++)
            (*of)[i] = NAN;
    }
    double *line = &(*of)[((instr->server - 1u) * 2 + back) * 2];
    if (isnan(line[0]))
        task_server_line(q->view, team, instr->server - 1u, back, &line[0], &line[1]);
    return line[0] + line[1] * quick_bytes(q, instr->tensor);
}

static Route *new_route(SimQuick *q, const Instr *instr, bool parts)
{
    const SimGroupTeams *from = &q->teams->group[instr->group],
                        *to = &q->teams->group[instr->to_group];
    g_autoptr(GPtrArray) known =
        g_ptr_array_new_with_free_func((GDestroyNotify)sim_transfer_free);
    g_autoptr(GArray) senders = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    const SimTransfer *transfer = sim_transfer_of(q->parts, q->view, instr, known);
    Route *route = g_new0(Route, 1);
    route->latency_s = transfer->latency_s;
    route->byte_s = transfer->byte_s;
    route->first_sender = g_new0(uint32_t, to->n[AXIS_POSITIONS] + 1);
    for (uint32_t t = 0; t < to->n[AXIS_POSITIONS]; t++) {
        uint32_t first, end;
        sim_transfer_sources(q->parts, instr->group, instr->to_group, parts,
                             q->teams->team[to->first[AXIS_POSITIONS] + t].first, &first,
                             &end);
        for (; first < end; first++) {
            const SimTeam *team =
                &q->teams->team[from->first[AXIS_POSITIONS] + from->team_of[first]];
            for (uint32_t k = 0; k < team->n_lanes; k++) {
                const uint32_t lane = from->index[team->lane[k]];
                const uint32_t n = senders->len;
                if (n == route->first_sender[t] ||
                    g_array_index(senders, uint32_t, n - 1) != lane)
                    g_array_append_val(senders, lane);
            }
        }
        route->first_sender[t + 1] = senders->len;
    }
    route->sender = g_memdup2(senders->data, senders->len * sizeof(uint32_t));
    return route;
}

const Route *quick_route(SimQuick *q, const Instr *instr)
{
    const BatchForms *batch = q->parts->layout.batch;
    const bool parts = batch && form_is_gather(batch->form[instr->tensor]);
    Route **route =
        &q->route[((size_t)instr->group * q->n_groups + instr->to_group) * 2 + parts];
    if (!*route)
        *route = new_route(q, instr, parts);
    return *route;
}

double sim_quick_place_s(SimQuick *q, uint32_t group, OpId op, uint32_t place)
{
    KILTER_ASSERT(group < q->n_groups);
    const SimGroupTeams *lanes = &q->teams->group[group];
    const uint32_t device = q->parts->layout.group[group].device[place];
    const Instr instr = {.kind = INSTR_COMPUTE, .group = (uint16_t)group, .op = op};
    return quick_op_s(q, &instr, lanes, lanes->index[q->teams->lane[device]]);
}

double sim_quick_sum_s(SimQuick *q, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(group < q->n_groups && tensor < q->n_tensors);
    const Instr instr = {.kind = INSTR_COLLECTIVE,
                         .group = (uint16_t)group,
                         .collective = COLLECTIVE_ALL_REDUCE,
                         .tensor = tensor};
    return q->parts->layout.group[group].n_replicas > 1 ? quick_sum_s(q, &instr) : 0;
}

double sim_quick_served_s(SimQuick *q, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(group < q->n_groups && tensor < q->n_tensors);
    const uint32_t n = q->parts->layout.group[group].n_replicas;
    double least = n > 1 && q->sums != SIM_SUMS_FREE ? INFINITY : 0;
    for (uint32_t r = 0; least > 0 && r < n; r++) {
        const Instr instr = {.kind = INSTR_COLLECTIVE,
                             .group = (uint16_t)group,
                             .server = (uint16_t)(r + 1),
                             .tensor = tensor};
        least = fmin(least,
                     quick_server_s(q, &instr, false) + quick_server_s(q, &instr, true));
    }
    return least;
}

double sim_quick_transfer_s(SimQuick *q, uint32_t from, uint32_t to, TensorId tensor)
{
    KILTER_ASSERT(from < q->n_groups && to < q->n_groups && tensor < q->n_tensors);
    const Instr instr = {.kind = INSTR_TRANSFER,
                         .group = (uint16_t)from,
                         .to_group = (uint16_t)to,
                         .microbatch = PROGRAM_WHOLE,
                         .tensor = tensor};
    const Route *route = quick_route(q, &instr);
    return route->latency_s + route->byte_s * quick_bytes(q, tensor);
}

double sim_quick_share(const SimQuick *q, uint32_t group, uint32_t place)
{
    const double *share = sim_part_replicas(q->parts, group);
    return share ? share[place / q->parts->layout.group[group].n_devices] : 1;
}
