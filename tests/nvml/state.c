/* Reading the state file, and the way into every call. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stand_in.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int initialised, in_flight;
static char names[MAX_DEVICES][80];

const char *state_path(const char *suffix, char *buffer, size_t size) {
    const char *path = getenv("NVML_STAND_IN");
    snprintf(buffer, size, "%s%s", path ? path : "/nonexistent", suffix);
    return buffer;
}

static void parse_rule(struct rules *rules, const char *line) {
    struct rule rule = {{0}, line[0] == 'd', 0};
    if (rules->count < MAX_RULES && sscanf(line, "%*s %63s %d", rule.call, &rule.value) == 2)
        rules->rule[rules->count++] = rule;
}

static void parse_process(struct device *device, const char *line) {
    struct process process = {0, 0, 'c'};
    if (sscanf(line, "proc %u %llu %c", &process.pid, &process.bytes, &process.list) >= 2 &&
        device->processes < MAX_PROCESSES)
        device->process[device->processes++] = process;
}

static int last_gpu(const struct state *state) {
    int place = state->count - 1;
    while (place >= 0 && state->device[place].parent != WHOLE) place--;
    return place;
}

static void parse_line(struct state *state, const char *line) {
    struct device *last = state->count ? &state->device[state->count - 1] : NULL;
    struct device found = {.parent = WHOLE};
    if (!strncmp(line, "error ", 6) || !strncmp(line, "delay ", 6))
        parse_rule(last ? &last->rules : &state->rules, line);
    else if (!strncmp(line, "proc ", 5) && last)
        parse_process(last, line);
    else if (sscanf(line, "driver %79s", state->driver) == 1 ||
             sscanf(line, "v3_stride %zu", &state->v3_stride) == 1 || state->count == MAX_DEVICES)
        return;
    else if (sscanf(line, "gpu %79s %1000[^\n]", found.uuid, found.keys) >= 1)
        state->device[state->count++] = found;
    else if (sscanf(line, "mig %u %79s %1000[^\n]", &found.slot, found.uuid, found.keys) >= 2) {
        found.parent = last_gpu(state);
        state->device[state->count++] = found;
    }
}

static struct state *read_state(void) {
    struct state *state = calloc(1, sizeof *state);
    char line[1200], path[1024];
    FILE *file = fopen(state_path("", path, sizeof path), "r");
    strcpy(state->driver, "570.86.15");
    state->v3_stride = 24;
    while (file && fgets(line, sizeof line, file)) parse_line(state, line);
    if (file) fclose(file);
    return state;
}

int rule_of(const struct rules *rules, const char *call, int is_delay) {
    for (int i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->rule[i];
        if (rule->is_delay == is_delay && (!strcmp(rule->call, call) || !strcmp(rule->call, "*")))
            return rule->value;
    }
    return 0;
}

static int obey(const struct rules *rules, const char *call) {
    int delay_ms = rule_of(rules, call, 1);
    if (delay_ms) usleep((useconds_t)delay_ms * 1000);
    return rule_of(rules, call, 0);
}

static void count_call(const char *call) {
    char path[1024];
    if (access(state_path(".calls", path, sizeof path), F_OK)) return;
    FILE *file = fopen(path, "a");
    if (file) {
        fprintf(file, "%s\n", call);
        fclose(file);
    }
}

int begin(const char *call, struct state **state) {
    pthread_mutex_lock(&lock);
    in_flight++;
    int usable = initialised;
    pthread_mutex_unlock(&lock);
    count_call(call);
    *state = read_state();
    return usable ? obey(&(*state)->rules, call) : UNINITIALIZED;
}

void end(struct state *state) {
    free(state);
    pthread_mutex_lock(&lock);
    in_flight--;
    pthread_mutex_unlock(&lock);
}

int about(const char *call, handle_t handle, struct state **state, struct device **device) {
    int code = begin(call, state);
    if (code) return code;
    for (int i = 0; i < (*state)->count; i++) {
        struct device *found = &(*state)->device[i];
        if (strcmp(found->uuid, handle)) continue;
        *device = found;
        code = obey(&found->rules, call);
        if (!code && found->parent != WHOLE)
            code = obey(&(*state)->device[found->parent].rules, call);
        return code;
    }
    return GPU_IS_LOST; /* it was there when the handle was made */
}

int initialise(const char *call) {
    struct state *state = read_state();
    int code = obey(&state->rules, call);
    free(state);
    pthread_mutex_lock(&lock);
    if (!code) initialised++;
    pthread_mutex_unlock(&lock);
    return code;
}

int shut_down(void) {
    count_call("nvmlShutdown");
    pthread_mutex_lock(&lock);
    int code = initialised ? OK : UNINITIALIZED;
    if (initialised) initialised--;
    if (!code && !initialised && in_flight) abort();
    pthread_mutex_unlock(&lock);
    return code;
}

handle_t handle_of(const char *uuid) {
    handle_t handle = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_DEVICES && !handle; i++) {
        if (!names[i][0]) strcpy(names[i], uuid);
        if (!strcmp(names[i], uuid)) handle = names[i];
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

struct device *nth_gpu(struct state *state, u32 index) {
    for (int i = 0; i < state->count; i++)
        if (state->device[i].parent == WHOLE && index-- == 0) return &state->device[i];
    return NULL;
}

int read_text(const struct device *device, const char *key, char *out, size_t size) {
    char copy[sizeof device->keys], *rest = strcpy(copy, device->keys), *word;
    size_t length = strlen(key);
    while ((word = strsep(&rest, " ")))
        if (!strncmp(word, key, length) && word[length] == '=') {
            snprintf(out, size, "%s", word + length + 1);
            for (char *at = out; *at; at++)
                if (*at == '_') *at = ' ';
            return OK;
        }
    return NOT_SUPPORTED;
}

int read_number(const struct device *device, const char *key, u64 *value) {
    char text[64];
    int code = read_text(device, key, text, sizeof text);
    if (!code) *value = strtoull(text, NULL, 0);
    return code;
}
