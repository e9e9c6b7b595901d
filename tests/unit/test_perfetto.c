/* Perfetto's traces, read back by a decoder of their own: tracks, slices in order, what overlaps,
 * arrows and counters. */
#include <string.h>

#include "tests/test.h"

#include "data/formats/trace/perfetto.h"

/* A field of a message. */
typedef struct {
    uint32_t field;
    uint64_t number; /* of varints and 64 bits */
    const uint8_t *bytes;
    size_t length;
} Field;

static uint64_t take_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (uint32_t shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 64);
        value |= (uint64_t)(**at & 0x7f) << shift;
        if (*(*at)++ < 0x80)
            return value;
    }
}

static bool take_field(const uint8_t **at, const uint8_t *end, Field *field)
{
    if (*at == end)
        return false;
    const uint64_t key = take_varint(at, end);
    *field = (Field){.field = (uint32_t)(key >> 3)};
    if ((key & 7) == 0) {
        field->number = take_varint(at, end);
    } else if ((key & 7) == 1) {
        memcpy(&field->number, *at, sizeof field->number);
        *at += sizeof field->number;
    } else {
        assert_int_equal(key & 7, 2);
        field->length = take_varint(at, end);
        field->bytes = *at;
        *at += field->length;
    }
    assert_true(*at <= end);
    return true;
}

/* The first field of that number in a message. */
static Field find(Field message, uint32_t number)
{
    const uint8_t *at = message.bytes, *end = at + message.length;
    Field field;
    while (take_field(&at, end, &field))
        if (field.field == number)
            return field;
    return (Field){0};
}

/* The packets in words, a line each. */
static void describe(GString *text, Field packet)
{
    static const char *const TYPE[] = {[1] = "begin", [2] = "end", [4] = "counter"};
    const Field track = find(packet, 60), event = find(packet, 11),
                texts = find(packet, 12);
    if (track.field)
        g_string_append_printf(text, "track %u.%u below %u '%.*s%.*s'\n",
                               (unsigned)(find(track, 1).number >> 12),
                               (unsigned)(find(track, 1).number & 0xfff),
                               (unsigned)(find(track, 5).number >> 12),
                               (int)find(track, 2).length, find(track, 2).bytes,
                               (int)find(find(track, 3), 6).length,
                               find(find(track, 3), 6).bytes);
    for (uint32_t kind = 1; texts.field && kind < 30; kind++) {
        const Field one = find(texts, kind);
        if (one.field)
            g_string_append_printf(text, "text %u.%u '%.*s'\n", kind,
                                   (unsigned)find(one, 1).number,
                                   (int)find(one, 2).length, find(one, 2).bytes);
    }
    if (!event.field)
        return;
    const uint64_t on = find(event, 11).number, bits = find(event, 44).number;
    double value;
    memcpy(&value, &bits, sizeof value);
    g_string_append_printf(
        text, "%s %u.%u at %u name %u out %u in %u value %g\n",
        TYPE[find(event, 9).number], (unsigned)(on >> 12), (unsigned)(on & 0xfff),
        (unsigned)find(packet, 8).number, (unsigned)find(event, 10).number,
        (unsigned)find(event, 47).number, (unsigned)find(event, 48).number, value);
}

static void add(Perfetto *perfetto, const char *event, const uint64_t *flow,
                uint32_t n_out, uint32_t n_in)
{
    json_t *json = json_loads(event, 0, NULL);
    assert_non_null(json);
    perfetto_add(perfetto, json, flow, n_out, n_in);
    json_decref(json);
}

static void test_packets(void **state)
{
    static const uint64_t FLOW[] = {7};
    (void)state;
    Perfetto *perfetto = perfetto_new();
    add(perfetto,
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"gpu\"}}",
        NULL, 0, 0);
    add(perfetto,
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":1,\"args\":{\"name\":"
        "\"sends\"}}",
        NULL, 0, 0);
#define SLICE(name, ts, dur)                                                           \
    "{\"ph\":\"X\",\"name\":\"" name "\",\"cat\":\"c\",\"pid\":0,\"tid\":1,\"ts\":" ts \
    ",\"dur\":" dur ",\"args\":{\"op\":\"x\",\"bytes\":5}}"
    add(perfetto, SLICE("a", "1", "2"), FLOW, 1, 0);
    add(perfetto, SLICE("b", "2.9996", "2"), FLOW, 0,
        1);                                          /* 3,000 and 4,999 or 5,000 ns */
    add(perfetto, SLICE("a", "4", "9"), NULL, 0, 0); /* overlaps b */
    add(perfetto,
        "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":0,\"ts\":3,\"args\":{\"bytes\":2.5}}",
        NULL, 0, 0);
    g_autoptr(GByteArray) bytes = perfetto_end(perfetto);
    g_autoptr(GString) text = g_string_new(NULL);
    const uint8_t *at = bytes->data, *end = at + bytes->len;
    Field packet;
    for (uint32_t n = 0; take_field(&at, end, &packet); n++) {
        assert_int_equal(packet.field, 1);
        assert_int_equal(find(packet, 10).number, 1);
        assert_int_equal(find(packet, 13).number, n == 0 ? 1 : 2);
        describe(text, packet);
    }
    assert_string_equal(text->str,
                        "track 1.0 below 0 'gpu'\n"
                        "track 1.2 below 1 'sends'\n"
                        "text 3.1 'op'\n"
                        "text 29.1 'x'\n"
                        "text 3.2 'bytes'\n"
                        "text 1.1 'c'\n"
                        "text 2.1 'a'\n"
                        "begin 1.2 at 1000 name 1 out 7 in 0 value 0\n"
                        "end 1.2 at 3000 name 0 out 0 in 0 value 0\n"
                        "text 2.2 'b'\n"
                        "begin 1.2 at 3000 name 2 out 0 in 0 value 0\n"
                        "end 1.2 at 5000 name 0 out 0 in 7 value 0\n"
                        "track 1.66 below 1 'sends'\n"
                        "begin 1.66 at 4000 name 1 out 0 in 0 value 0\n"
                        "end 1.66 at 13000 name 0 out 0 in 0 value 0\n"
                        "track 1.4095 below 1 'memory'\n"
                        "counter 1.4095 at 3000 name 0 out 0 in 0 value 2.5\n");
}

static void test_names(void **state)
{
    (void)state;
    assert_true(perfetto_is_name("a.pftrace") && perfetto_is_name("a.perfetto-trace.gz"));
    assert_false(perfetto_is_name("a.json") || perfetto_is_name("pftrace"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
