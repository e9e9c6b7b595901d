/* Progress of sweeps on a terminal, and their interruption. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "experiments/command.h"

/* SIGINT and SIGTERM are blocked and polled for: no handler, hence no global that a handler would write. */
struct Terminal {
    bool shows;
    bool stopped;
    sigset_t signals, before;
};

Terminal *terminal_begin(bool quiet)
{
    Terminal *terminal = g_new0(Terminal, 1);
    terminal->shows = !quiet && isatty(STDERR_FILENO);
    sigemptyset(&terminal->signals);
    sigaddset(&terminal->signals, SIGINT);
    sigaddset(&terminal->signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &terminal->signals, &terminal->before);
    return terminal;
}

static void show(const SweepProgress *p)
{
    uint32_t finished = p->done + p->failed;
    uint32_t left = p->total - p->present - finished;
    double rate = p->elapsed_s > 0.0 ? finished / p->elapsed_s : 0.0;
    fprintf(stderr, "\r\033[K%u/%u", p->present + finished, p->total);
    if (p->oom)
        fprintf(stderr, ", %u out of memory", p->oom);
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
        show(progress);
    const struct timespec now = {0};
    if (!terminal->stopped && sigtimedwait(&terminal->signals, NULL, &now) > 0) {
        terminal->stopped = true;
        /* A second Ctrl-C does not wait for what is in flight. */
        pthread_sigmask(SIG_SETMASK, &terminal->before, NULL);
        if (terminal->shows)
            fputs("\nfinishing what is in flight\n", stderr);
    }
    return !terminal->stopped;
}

void terminal_end(Terminal *terminal)
{
    if (terminal->shows)
        fputs("\r\033[K", stderr);
    pthread_sigmask(SIG_SETMASK, &terminal->before, NULL);
    g_free(terminal);
}
