/* Progress of sweeps and searches on a terminal, and the interruption of sweeps. */
#include <glib-unix.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "experiments/cli/command.h"
#include "experiments/cli/limits.h"

/* These are sources of GLib's main context, which every watch looks at. (Blocking and polling for
 * them is not enough: a library may have started threads of its own, where a signal to the process
 * still ends it.) */
enum { SIGNALS = 3 };
static const int SIGNAL[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

struct Terminal {
    bool shows;
    bool stopped;
    guint source[SIGNALS]; /* 0: the signal was ignored before, or is no longer watched */
};

static gboolean stop(gpointer data)
{
    Terminal *terminal = data;
    terminal->stopped = true;
    return G_SOURCE_CONTINUE;
}

static void release(Terminal *terminal)
{
    for (int i = 0; i < SIGNALS; i++)
        g_clear_handle_id(&terminal->source[i], g_source_remove);
    limits_catch_interrupts();
}

Terminal *terminal_begin(bool quiet)
{
    Terminal *terminal = g_new0(Terminal, 1);
    terminal->shows = !quiet && isatty(STDERR_FILENO);
    if (terminal->shows)
        limits_hush();
    /* Whoever reads the progress or the answer may go; the store is closed all the same. */
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction before;
        if (sigaction(SIGNAL[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            terminal->source[i] = g_unix_signal_add(SIGNAL[i], stop, terminal);
    }
    return terminal;
}

static void terminal_show(const SweepProgress *p)
{
    uint32_t finished = p->done + p->failed;
    uint32_t left = p->total - p->present - finished;
    double rate = p->elapsed_s > 0.0 ? finished / p->elapsed_s : 0.0;
    fprintf(stderr, "\r\033[K%u/%u", p->present + finished, p->total);
    if (p->oom)
        fprintf(stderr, ", %u out of memory", p->oom);
    if (p->impossible)
        fprintf(stderr, ", %u impossible", p->impossible);
    if (p->failed)
        fprintf(stderr, ", %u failed", p->failed);
    if (rate > 0.0)
        fprintf(stderr, ", %.1f/s, ETA %.0f s", rate, ceil(left / rate));
    fflush(stderr);
}

bool terminal_watch(const SweepProgress *progress, void *data)
{
    Terminal *terminal = data;
    if (terminal->shows)
        terminal_show(progress);
    if (!terminal->stopped && g_main_context_iteration(NULL, FALSE) &&
        terminal->stopped) {
        /* A second Ctrl-C does not wait for configurations in flight. */
        release(terminal);
        if (terminal->shows)
            fputs("\nfinishing the configurations in flight\n", stderr);
    }
    return !terminal->stopped;
}

void terminal_end(Terminal *terminal)
{
    if (terminal->shows)
        fputs("\r\033[K", stderr);
    release(terminal);
    g_free(terminal);
}

/* --- one search --- */

struct Pace {
    const char *doing;
    GThread *thread; /* NULL: nothing is shown */
    gint64 start;
    GMutex lock; /* of all below */
    GCond ends;
    bool ended;
    char *what; /* NULL: the search has no steps */
    uint32_t done, total;
};

static void pace_show(const Pace *pace)
{
    enum { SURE = 3 }; /* seconds after which the rest is estimated */
    const double s = (double)(g_get_monotonic_time() - pace->start) / G_USEC_PER_SEC;
    fprintf(stderr, "\r\033[K%s", pace->doing);
    if (pace->what)
        fprintf(stderr, " %u of %u (%s)", pace->done + 1, pace->total, pace->what);
    fprintf(stderr, ", %.0f s", s);
    if (pace->done > 0 && s >= SURE)
        fprintf(stderr, ", about %.0f s left",
                ceil(s / pace->done * (pace->total - pace->done)));
    fflush(stderr);
}

static gpointer pace_watch(gpointer data)
{
    Pace *pace = data;
    g_mutex_lock(&pace->lock);
    for (gint64 next = pace->start + G_USEC_PER_SEC; !pace->ended;)
        if (!g_cond_wait_until(&pace->ends, &pace->lock, next)) {
            pace_show(pace);
            next += G_USEC_PER_SEC;
        }
    g_mutex_unlock(&pace->lock);
    return NULL;
}

Pace *pace_begin(const char *doing, bool quiet)
{
    Pace *pace = g_new0(Pace, 1);
    *pace = (Pace){.doing = doing, .start = g_get_monotonic_time()};
    g_mutex_init(&pace->lock);
    g_cond_init(&pace->ends);
    if (!quiet && isatty(STDERR_FILENO)) {
        limits_hush();
        pace->thread = g_thread_new("pace", pace_watch, pace);
    }
    return pace;
}

void pace_step(void *data, uint32_t done, uint32_t total, const char *what)
{
    Pace *pace = data;
    g_mutex_lock(&pace->lock);
    put_block(pace->what, g_strdup(what));
    pace->done = done;
    pace->total = total;
    g_mutex_unlock(&pace->lock);
}

void pace_end(Pace *pace)
{
    g_mutex_lock(&pace->lock);
    pace->ended = true;
    g_cond_signal(&pace->ends);
    g_mutex_unlock(&pace->lock);
    if (pace->thread) {
        g_thread_join(pace->thread);
        fputs("\r\033[K", stderr);
    }
    g_free(pace->what);
    g_free(pace);
}
