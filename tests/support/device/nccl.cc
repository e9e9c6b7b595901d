/* NCCL of the emulator. All ranks are this thread's: what a group leaves unmatched, real ranks
 * would wait for. */
#include "tests/support/device/inside.h"

#include <cstring>

#include <cuda_bf16.h>
#include <nccl.h>

struct Team {
    uint32_t number;
    std::vector<DeviceComm *> member; /* [rank] */
};

struct DeviceComm {
    std::shared_ptr<Team> team;
    int rank;
    Gpu *device;
};

enum CallKind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECV };
static const char *const CALLS[] = {"ncclAllReduce", "ncclReduce",        "ncclBroadcast",
                                    "ncclAllGather", "ncclReduceScatter", "ncclSend",
                                    "ncclRecv"};

struct Call {
    CallKind kind;
    const char *from;
    char *to;
    uint64_t n;
    ncclDataType_t type;
    int root; /* or peer */
    ncclComm_t comm;
    DeviceStream *stream;
    std::vector<char> result; /* what it writes at its end */
};

/* The calls of one group on one team. */
struct Meeting {
    std::shared_ptr<Team> team;
    std::vector<std::vector<Call>> calls; /* [rank] */
    std::vector<Launch *> launch;         /* [rank], NULL: has no calls */
    bool started;
};

struct Launch {
    std::shared_ptr<Meeting> meeting;
    size_t rank;
    DeviceStream *stream;
};

struct Joining { /* ncclCommInitRank or ncclCommSplit, in a group */
    ncclComm_t *out;
    ncclComm_t parent;
    uint64_t id;
    int n, rank, color;
    Gpu *device;
};

static struct {
    int depth;
    uint32_t teams;
    uint64_t ids;
    std::vector<Call> call;
    std::vector<Joining> joining;
} n;

static uint64_t bytes_of(ncclDataType_t type)
{
    return type == ncclDouble ? 8 : type == ncclFloat ? 4 : 2;
}

static double number_get(const char *data, ncclDataType_t type, uint64_t i)
{
    switch (type) {
    case ncclDouble:
        return ((const double *)data)[i];
    case ncclFloat:
        return (double)((const float *)data)[i];
    case ncclHalf:
        return (double)__half2float(((const __half *)data)[i]);
    default:
        return (double)__bfloat162float(((const __nv_bfloat16 *)data)[i]);
    }
}

static void number_set(char *data, ncclDataType_t type, uint64_t i, double value)
{
    switch (type) {
    case ncclDouble:
        ((double *)data)[i] = value;
        break;
    case ncclFloat:
        ((float *)data)[i] = (float)value;
        break;
    case ncclHalf:
        ((__half *)data)[i] = __float2half_rn((float)value);
        break;
    default:
        ((__nv_bfloat16 *)data)[i] = __float2bfloat16_rn((float)value);
    }
}

/* --- when the group runs --- */

bool launch_is_ready(const Launch &launch, std::vector<DeviceStream *> *missing)
{
    bool ready = true;
    for (const Launch *other : launch.meeting->launch) {
        if (launch.meeting->started || !other)
            continue;
        const std::deque<DeviceWork> &work = other->stream->work;
        if (!work.empty() && work.front().launch.get() == other)
            continue;
        ready = false;
        if (missing)
            missing->push_back(other->stream);
    }
    return ready;
}

/* The k-th collective of a rank; or its k-th message to or from a peer. */
static Call *call_at(std::vector<Call> &calls, bool message, CallKind kind, int peer,
                     size_t k)
{
    for (Call &call : calls)
        if ((message ? call.kind == kind && call.root == peer : call.kind < SEND) &&
            k-- == 0)
            return &call;
    return NULL;
}

static std::vector<char> sum_of(Meeting &meeting, size_t k, uint64_t first,
                                const Call &call)
{
    std::vector<char> result(call.n * bytes_of(call.type));
    const size_t ranks = meeting.calls.size(), start = device_random((uint32_t)ranks);
    for (uint64_t i = 0; i < call.n; i++) {
        double sum = 0;
        for (size_t r = 0; r < ranks; r++) /* in any order */
            sum += number_get(
                call_at(meeting.calls[(start + r) % ranks], false, SEND, 0, k)->from,
                call.type, first + i);
        number_set(result.data(), call.type, i, sum);
    }
    return result;
}

/* The result of a rank's call, the k-th collective or message of its kind. */
static void call_compute(Meeting &meeting, size_t rank, Call &call, size_t k)
{
    const uint64_t bytes = call.n * bytes_of(call.type);
    const char *from = NULL;
    switch (call.kind) {
    case ALL_REDUCE:
        call.result = sum_of(meeting, k, 0, call);
        return;
    case REDUCE_SCATTER:
        call.result = sum_of(meeting, k, rank * call.n, call);
        return;
    case REDUCE:
        if (call.root == (int)rank)
            call.result = sum_of(meeting, k, 0, call);
        return;
    case ALL_GATHER:
        for (std::vector<Call> &calls : meeting.calls) {
            from = call_at(calls, false, SEND, 0, k)->from;
            call.result.insert(call.result.end(), from, from + bytes);
        }
        return;
    case BROADCAST:
        from = call_at(meeting.calls[(size_t)call.root], false, SEND, 0, k)->from;
        break;
    case RECV:
        from = call_at(meeting.calls[(size_t)call.root], true, SEND, (int)rank, k)->from;
        break;
    case SEND:
        return;
    }
    call.result.assign(from, from + bytes);
}

static void meeting_start(Meeting &meeting)
{
    meeting.started = true;
    for (size_t rank = 0; rank < meeting.calls.size(); rank++) {
        size_t collectives = 0;
        std::map<std::pair<int, int>, size_t> messages;
        for (Call &call : meeting.calls[rank])
            call_compute(meeting, rank, call,
                         call.kind < SEND ? collectives++
                                          : messages[{call.kind, call.root}]++);
    }
    for (std::vector<Call> &calls : meeting.calls)
        for (Call &call : calls)
            if (!call.result.empty())
                memset(call.to, 0xff, call.result.size());
}

void launch_run(Launch &launch)
{
    device_enter_all("NCCL");
    if (!launch.meeting->started)
        meeting_start(*launch.meeting);
    for (Call &call : launch.meeting->calls[launch.rank]) {
        memcpy(call.to, call.result.data(), call.result.size());
        device_counted()->moved_bytes += call.result.size();
    }
}

/* --- the end of a group --- */

static std::string who(const Team &team, size_t rank)
{
    return "rank " + std::to_string(rank) + " of communicator " +
           std::to_string(team.number) + " (device " +
           std::to_string(device_number(team.member[rank]->device)) + ")";
}

static void meeting_check_collectives(Meeting &meeting)
{
    const Team &team = *meeting.team;
    size_t most = 0, busiest = 0;
    for (size_t r = 0; r < meeting.calls.size(); r++) {
        size_t k = 0;
        while (call_at(meeting.calls[r], false, SEND, 0, k))
            k++;
        if (k > most) {
            most = k;
            busiest = r;
        }
    }
    for (size_t k = 0; k < most; k++)
        for (size_t r = 0; r < meeting.calls.size(); r++) {
            const Call *want = call_at(meeting.calls[busiest], false, SEND, 0, k),
                       *has = call_at(meeting.calls[r], false, SEND, 0, k);
            if (!has || has->kind != want->kind || has->root != want->root ||
                has->n != want->n || has->type != want->type)
                device_violation("%s waits in call %zu of its group, %s of %llu numbers, "
                                 "for %s, which "
                                 "calls %s of %llu there",
                                 who(team, busiest).c_str(), k, CALLS[want->kind],
                                 (unsigned long long)want->n, who(team, r).c_str(),
                                 has ? CALLS[has->kind] : "nothing",
                                 has ? (unsigned long long)has->n : 0);
        }
}

static void meeting_check_messages(Meeting &meeting)
{
    for (size_t r = 0; r < meeting.calls.size(); r++) {
        std::map<std::pair<int, int>, size_t> messages;
        for (const Call &call : meeting.calls[r]) {
            if (call.kind < SEND)
                continue;
            const Call *other = call_at(meeting.calls[(size_t)call.root], true,
                                        call.kind == SEND ? RECV : SEND, (int)r,
                                        messages[{call.kind, call.root}]++);
            if (!other || other->n != call.n || other->type != call.type)
                device_violation("%s waits in %s of %llu numbers for %s, which %s",
                                 who(*meeting.team, r).c_str(), CALLS[call.kind],
                                 (unsigned long long)call.n,
                                 who(*meeting.team, (size_t)call.root).c_str(),
                                 other ? "has another number of them" : "does not call");
        }
    }
}

static void calls_end(void)
{
    std::vector<std::shared_ptr<Meeting>> meetings;
    for (Call &call : n.call) {
        std::shared_ptr<Meeting> meeting;
        for (auto &other : meetings)
            if (other->team == call.comm->team)
                meeting = other;
        if (!meeting) {
            meeting = std::make_shared<Meeting>();
            meeting->team = call.comm->team;
            meeting->calls.resize(call.comm->team->member.size());
            meeting->launch.resize(meeting->calls.size());
            meetings.push_back(meeting);
        }
        meeting->calls[(size_t)call.comm->rank].push_back(call);
    }
    n.call.clear();
    for (auto &meeting : meetings) {
        meeting_check_collectives(*meeting);
        meeting_check_messages(*meeting);
        std::vector<std::shared_ptr<Launch>> launches;
        for (size_t r = 0; r < meeting->calls.size(); r++)
            if (!meeting->calls[r].empty()) {
                launches.push_back(std::make_shared<Launch>(
                    Launch{meeting, r, meeting->calls[r][0].stream}));
                meeting->launch[r] = launches.back().get();
            }
        for (auto &launch : launches) {
            DeviceWork work;
            work.name = std::string(CALLS[meeting->calls[launch->rank][0].kind]) +
                        " as " + who(*meeting->team, launch->rank);
            work.launch = launch;
            device_append(launch->stream, std::move(work));
        }
    }
}

static void team_make(std::vector<Joining *> &joining)
{
    auto team = std::make_shared<Team>();
    team->number = n.teams++;
    for (Joining *one : joining) {
        for (const DeviceComm *other : team->member)
            if (other->device == one->device)
                device_violation("two ranks of a communicator are on device %d",
                                 device_number(one->device));
        *one->out = new DeviceComm{team, (int)team->member.size(), one->device};
        team->member.push_back(*one->out);
    }
}

static void joining_end(void)
{
    std::map<uint64_t, std::map<int, Joining *>> worlds;
    std::map<std::pair<Team *, int>, std::multimap<int, Joining *>> parts;
    std::map<Team *, size_t> callers;
    for (Joining &one : n.joining)
        if (one.parent) {
            callers[one.parent->team.get()]++;
            if (one.color != NCCL_SPLIT_NOCOLOR)
                parts[{one.parent->team.get(), one.color}].insert({one.rank, &one});
        } else {
            worlds[one.id][one.rank] = &one;
        }
    for (auto &world : worlds) {
        std::vector<Joining *> all;
        for (auto &one : world.second)
            all.push_back(one.second);
        if ((int)all.size() != all[0]->n)
            device_violation("ncclCommInitRank: %zu ranks wait for %zu others",
                             all.size(), (size_t)all[0]->n - all.size());
        team_make(all);
    }
    for (auto &team : callers)
        if (team.second != team.first->member.size())
            device_violation(
                "ncclCommSplit: %zu ranks of communicator %u wait for %zu others",
                team.second, team.first->number, team.first->member.size() - team.second);
    for (auto &part : parts) {
        std::vector<Joining *> all;
        for (auto &one : part.second)
            all.push_back(one.second);
        team_make(all);
    }
    n.joining.clear();
}

extern "C" ncclResult_t ncclGroupStart(void)
{
    n.depth++;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclGroupEnd(void)
{
    if (n.depth == 0)
        return ncclInvalidUsage;
    if (--n.depth > 0)
        return ncclSuccess;
    joining_end();
    calls_end();
    return ncclSuccess;
}

/* --- the other entry points --- */

extern "C" const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess        ? "no error"
           : result == ncclInvalidUsage ? "invalid usage"
                                        : "invalid argument";
}

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const uint64_t number = ++n.ids;
    memcpy(id->internal, &number, sizeof number);
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                                         int rank)
{
    uint64_t number;
    memcpy(&number, id.internal, sizeof number);
    ncclGroupStart();
    n.joining.push_back({comm, NULL, number, ranks, rank, 0, device_current()});
    return ncclGroupEnd();
}

extern "C" ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                                      ncclComm_t *part, void *)
{
    *part = NULL;
    ncclGroupStart();
    n.joining.push_back({part, comm, 0, 0, key, color, comm->device});
    return ncclGroupEnd();
}

extern "C" ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    /* its team's calls have streams of their own, which end when they are destroyed */
    delete comm;
    return ncclSuccess;
}

static void range_check(const Call &call, const void *data, uint64_t numbers)
{
    const uint64_t bytes = numbers * bytes_of(call.type);
    const Gpu *owner = bytes ? device_of(data, bytes) : NULL;
    if (bytes > 0 && !owner)
        device_violation("%s: %llu bytes are not in one allocation", CALLS[call.kind],
                         (unsigned long long)bytes);
    for (const DeviceComm *member : call.comm->team->member)
        if (owner && (member == call.comm || device_reaches(member->device, owner)) &&
            !device_has_access(member->device, owner))
            device_violation("%s: %s has no access to %llu bytes of device %d",
                             CALLS[call.kind],
                             who(*call.comm->team, (size_t)member->rank).c_str(),
                             (unsigned long long)bytes, device_number(owner));
}

static ncclResult_t add(Call call, uint64_t read, uint64_t written)
{
    if (call.stream->device != call.comm->device || call.root < 0 ||
        (size_t)call.root >= call.comm->team->member.size())
        return ncclInvalidArgument;
    range_check(call, call.from, read);
    range_check(call, call.to, written);
    device_counted()->collectives++;
    ncclGroupStart();
    n.call.push_back(std::move(call));
    return ncclGroupEnd();
}

#define CALL(kind, from, to, root) \
    add({kind, (const char *)(from), (char *)(to), count, type, root, comm, stream, {}},

extern "C" ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                                      ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                                      cudaStream_t stream)
{
    return CALL(ALL_REDUCE, from, to, 0) count, count);
}

extern "C" ncclResult_t ncclReduce(const void *from, void *to, size_t count,
                                   ncclDataType_t type, ncclRedOp_t, int root,
                                   ncclComm_t comm, cudaStream_t stream)
{
    return CALL(REDUCE, from, to, root) count, comm->rank == root ? count : 0);
}

extern "C" ncclResult_t ncclBroadcast(const void *from, void *to, size_t count,
                                      ncclDataType_t type, int root, ncclComm_t comm,
                                      cudaStream_t stream)
{
    return CALL(BROADCAST, from, to, root) comm->rank == root ? count : 0, count);
}

extern "C" ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                                      ncclDataType_t type, ncclComm_t comm,
                                      cudaStream_t stream)
{
    return CALL(ALL_GATHER, from, to, 0) count, count * comm->team->member.size());
}

extern "C" ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count,
                                          ncclDataType_t type, ncclRedOp_t,
                                          ncclComm_t comm, cudaStream_t stream)
{
    return CALL(REDUCE_SCATTER, from, to, 0) count * comm->team->member.size(), count);
}

extern "C" ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type,
                                 int peer, ncclComm_t comm, cudaStream_t stream)
{
    return CALL(SEND, from, NULL, peer) count, 0);
}

extern "C" ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer,
                                 ncclComm_t comm, cudaStream_t stream)
{
    return CALL(RECV, NULL, to, peer) 0, count);
}
