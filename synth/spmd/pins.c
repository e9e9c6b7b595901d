/* Pins: parsing, and the rules that they allow. */
#include "synth/spmd/pins.h"
#include "data/base/free.h"

#include <string.h>

struct SynthPins {
    FormSet *made, *read; /* [tensor] */
    char **text;          /* [tensor]: the pin in force, or NULL */
    uint32_t n;
};

static const FormSet any_form = (FormSet)((1u << FORM_MAX) - 1);

/* A pin as written. */
typedef struct {
    const char *text; /* the whole pin */
    char *pattern;
    FormSet made, read;
    bool two; /* it is MADE->READ */
} Pin;

static bool parse_form(const char *pin, const char *text, FormSet *forms, GError **error)
{
    Form form;
    if (strcmp(text, "*") == 0) {
        *forms = any_form;
        return true;
    }
    if (!form_parse(text, &form))
        return refuse(error,
                      "pin '%s': expected a form, identity, reduce or gather(DIM) with "
                      "DIM below %d, got '%s'",
                      pin, TENSOR_MAX_RANK, text);
    *forms = (FormSet)(1u << form);
    return true;
}

/* `text`: without blanks at its ends. */
static bool parse_pin(const char *text, Pin *pin, GError **error)
{
    if (!g_utf8_validate(text, -1, NULL)) /* GLib's patterns require valid UTF-8 */
        return refuse(error, "pin '%s': expected UTF-8", text);
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return refuse(error, "pin '%s': expected TENSOR=FORM or TENSOR=MADE->READ", text);
    g_auto(GStrv) form = g_strsplit(equals + 1, "->", 2);
    *pin = (Pin){.text = text, .two = form[1] != NULL};
    if (!parse_form(text, g_strstrip(form[0]), &pin->made, error) ||
        !parse_form(text, g_strstrip(form[pin->two]), &pin->read, error))
        return false;
    pin->pattern = g_strstrip(g_strndup(text, (gsize)(equals - text)));
    return true;
}

/* The pins of a text, without comments and blanks. Free with g_strfreev. */
static char **split_pins(const char *text)
{
    g_autoptr(GStrvBuilder) pins = g_strv_builder_new();
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    for (char **l = line; *l; l++) {
        (*l)[strcspn(*l, "#")] = '\0';
        g_auto(GStrv) part = g_strsplit(*l, ";", -1);
        for (char **p = part; *p; p++)
            if (*g_strstrip(*p))
                g_strv_builder_add(pins, *p);
    }
    return g_strv_builder_end(pins);
}

char *synth_pins_text(const char *text, GError **error)
{
    g_auto(GStrv) pins = split_pins(text);
    for (char **p = pins; *p; p++) {
        Pin pin = {0};
        if (!parse_pin(*p, &pin, error))
            return NULL;
        g_free(pin.pattern);
    }
    return g_strjoinv("; ", pins);
}

/* Whether the space has the pin's forms for the tensor: at rest or when made, and when read. */
static bool can_have(const Graph *graph, TensorId id, const Pin *pin, GError **error)
{
    const Tensor *tensor = graph_tensor(graph, id);
    bool source = tensor->producer == GRAPH_NONE;
    for (Form form = 0; form < FORM_MAX; form++) {
        bool made = pin->made != any_form && (pin->made >> form & 1u);
        bool read = pin->read != any_form && (pin->read >> form & 1u);
        char name[FORM_TEXT];
        if (!made && !read)
            continue;
        if (form_is_gather(form) && form_dim(form) >= tensor->rank)
            return refuse(error,
                          "pin '%s': expected a dim below %u, which is the rank of %s",
                          pin->text, tensor->rank, tensor->name);
        if (!form_can_hold(graph, id, form))
            return refuse(error, "pin '%s': %s cannot be in form %s: %s", pin->text,
                          tensor->name, form_text(form, name),
                          form_is_gather(form) ? "its ops need that dim whole"
                                               : "integers have no partial sums");
        if (made && source && form == FORM_REDUCE)
            return refuse(error,
                          "pin '%s': %s cannot be in form reduce before the iteration",
                          pin->text, tensor->name);
    }
    if (pin->two && tensor->role == ROLE_INPUT)
        return refuse(error,
                      "pin '%s': expected one form, since %s is an input, which is "
                      "loaded as it is read",
                      pin->text, tensor->name);
    return true;
}

/* Pins all tensors that match, in place of earlier pins on them. */
static bool apply_pin(SynthPins *pins, const Graph *graph, const Pin *pin, GError **error)
{
    g_autoptr(GPatternSpec) pattern = g_pattern_spec_new(pin->pattern);
    bool matched = false;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        if (!g_pattern_spec_match_string(pattern, graph_tensor(graph, t)->name))
            continue;
        if (!can_have(graph, t, pin, error))
            return false;
        matched = true;
        pins->made[t] = pin->made;
        pins->read[t] = pin->read;
        put_block(pins->text[t], g_strdup(pin->text));
    }
    if (!matched)
        return refuse(error, "pin '%s': model '%s' has no tensor '%s'", pin->text,
                      graph_name(graph), pin->pattern);
    return true;
}

SynthPins *synth_pins_new(const Graph *graph, const char *text, GError **error)
{
    SynthPins *pins = g_new0(SynthPins, 1);
    pins->n = graph_n_tensors(graph);
    pins->made = g_new(FormSet, pins->n);
    pins->read = g_new(FormSet, pins->n);
    pins->text = g_new0(char *, pins->n);
    memset(pins->made, any_form, pins->n * sizeof *pins->made);
    memset(pins->read, any_form, pins->n * sizeof *pins->read);
    g_auto(GStrv) list = split_pins(text);
    for (char **p = list; *p; p++) {
        Pin pin = {0};
        bool good = parse_pin(*p, &pin, error) && apply_pin(pins, graph, &pin, error);
        g_free(pin.pattern);
        if (!good) {
            synth_pins_free(pins);
            return NULL;
        }
    }
    return pins;
}

FREE_DEFINE(synth_pins_free, SynthPins, pins, free_items(pins->text, pins->n),
            free_each(pins->text, pins->made, pins->read));

/* --- masks --- */

FormSet pins_made(const SynthPins *pins, TensorId tensor)
{
    KILTER_ASSERT(!pins || tensor < pins->n);
    return pins ? pins->made[tensor] : any_form;
}

/* The update reads its parameter where it runs, whatever the pin. */
static FormSet read_by(const SynthPins *pins, const Graph *graph, const Op *op,
                       TensorId tensor)
{
    bool update =
        op->pass == PASS_UPDATE && graph_tensor(graph, tensor)->role == ROLE_PARAMETER;
    return update ? any_form : pins->read[tensor];
}

bool pins_allow(const SynthPins *pins, const Graph *graph, OpId id, const Form *form)
{
    const Op *op = graph_get_op(graph, id);
    bool allowed = true;
    for (uint32_t i = 0; pins && i < op->n_in; i++)
        allowed &= read_by(pins, graph, op, op->in[i]) >> form[i] & 1u;
    for (uint32_t o = 0; pins && o < op->n_out; o++)
        allowed &= pins->made[op->out[o]] >> form[op->n_in + o] & 1u;
    return allowed;
}

static TensorId operand(const Op *op, uint32_t i)
{
    KILTER_ASSERT(i < op->n_in + op->n_out);
    return i < op->n_in ? op->in[i] : op->out[i - op->n_in];
}

bool pins_touch(const SynthPins *pins, const Graph *graph, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    for (uint32_t i = 0; pins && i < op->n_in + op->n_out; i++)
        if (pins->text[operand(op, i)])
            return true;
    return false;
}

void pins_describe(const SynthPins *pins, const Graph *graph, OpId id, GString *key)
{
    const Op *op = graph_get_op(graph, id);
    for (uint32_t i = 0; pins && i < op->n_in + op->n_out; i++) {
        TensorId t = operand(op, i);
        if (pins->text[t])
            g_string_append_printf(key, "[%u %x %x]", i, pins->made[t], pins->read[t]);
    }
    g_string_append_c(key, ';');
}

bool pins_fail(const SynthPins *pins, const Graph *graph, OpId id, GError **error)
{
    const Op *op = graph_get_op(graph, id);
    g_autoptr(GString) named = g_string_new("");
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const char *text = pins->text[operand(op, i)];
        g_autofree char *quoted = g_strdup_printf("'%s'", text);
        if (text && !strstr(named->str, quoted))
            g_string_append_printf(named, "%s%s", n++ ? ", " : "", quoted);
    }
    return refuse(error, "pin%s %s cannot hold%s: %s has no rule for %s",
                  n > 1 ? "s" : "", named->str, n > 1 ? " together" : "", op->name,
                  n > 1 ? "them" : "it");
}

bool synth_pins_hold(const SynthPins *pins, const Graph *graph, const Program *program)
{
    for (uint32_t i = 0; pins && i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind == INSTR_LOAD && !(pins->made[instr->tensor] >> instr->to & 1u))
            return false;
        if (instr->kind == INSTR_COMPUTE &&
            !pins_allow(pins, graph, instr->op, instr->form))
            return false;
    }
    return true;
}
