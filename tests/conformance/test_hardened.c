/* The program as it was linked: its place in memory is drawn at each start, no table of functions
 * can be written after it, no code lies on the stack, and a function that writes over its frame
 * ends the program. The library exports what its releases did. */
#include <elf.h>

#include "tests/test.h"

typedef struct {
    char *bytes;
    gsize n;
} Image;

/* A part of the file, or a failed test where the file is shorter. */
static const void *image_at(const Image *image, uint64_t offset, uint64_t n)
{
    assert_true(offset <= image->n && n <= image->n - offset);
    return image->bytes + offset;
}

/* The program, or a file beside it. */
static Image image_load(const char *beside)
{
    Image image;
    g_autofree char *folder = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *file = beside ? g_build_filename(folder, beside, NULL)
                                   : g_strdup(g_getenv("KILTER_BIN"));
    assert_true(g_file_get_contents(file, &image.bytes, &image.n, NULL));
    return image;
}

static bool image_is_elf(const Image *image)
{
    const unsigned char *head = image_at(image, 0, EI_NIDENT);
    return memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS64;
}

static const Elf64_Phdr *image_segment(const Image *image, uint32_t type)
{
    const Elf64_Ehdr *head = image_at(image, 0, sizeof *head);
    for (uint32_t i = 0; i < head->e_phnum; i++) {
        const Elf64_Phdr *segment = image_at(
            image, head->e_phoff + i * (uint64_t)head->e_phentsize, sizeof *segment);
        if (segment->p_type == type)
            return segment;
    }
    return NULL;
}

static void test_linked(void **state)
{
    (void)state;
    Image image = image_load(NULL);
    const Elf64_Ehdr *head = image_at(&image, 0, sizeof *head);
    if (!image_is_elf(&image)) {
        print_message("skipped: no ELF file of 64 bits\n");
        g_free(image.bytes);
        skip();
    }
    assert_int_equal(head->e_type, ET_DYN);
    assert_non_null(image_segment(&image, PT_GNU_RELRO));
    const Elf64_Phdr *stack = image_segment(&image, PT_GNU_STACK);
    assert_true(stack && !(stack->p_flags & PF_X));
    const Elf64_Phdr *dynamic = image_segment(&image, PT_DYNAMIC);
    assert_non_null(dynamic);
    const Elf64_Dyn *entry = image_at(&image, dynamic->p_offset, dynamic->p_filesz);
    bool now = false;
    for (uint64_t i = 0; i < dynamic->p_filesz / sizeof *entry; i++)
        now |= (entry[i].d_tag == DT_FLAGS && entry[i].d_un.d_val & DF_BIND_NOW) ||
               (entry[i].d_tag == DT_FLAGS_1 && entry[i].d_un.d_val & DF_1_NOW);
    assert_true(now);
    g_free(image.bytes);
}

static int image_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of dynamic symbols, those defined here or those needed from elsewhere, in order, as
 * lines. Caller frees. */
static char *image_symbols(const Image *image, bool defined)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const Elf64_Ehdr *head = image_at(image, 0, sizeof *head);
    const Elf64_Shdr *section =
        image_at(image, head->e_shoff, head->e_shnum * sizeof *section);
    for (uint32_t i = 0; i < head->e_shnum; i++) {
        if (section[i].sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Sym *symbol =
            image_at(image, section[i].sh_offset, section[i].sh_size);
        const Elf64_Shdr *text = &section[section[i].sh_link];
        const char *name = image_at(image, text->sh_offset, text->sh_size);
        for (uint64_t s = 1; s < section[i].sh_size / sizeof *symbol; s++)
            if ((symbol[s].st_shndx != SHN_UNDEF) == defined &&
                ELF64_ST_TYPE(symbol[s].st_info) != STT_OBJECT)
                g_ptr_array_add(names, (void *)(name + symbol[s].st_name));
    }
    g_ptr_array_sort(names, image_by_name);
    g_ptr_array_add(names, NULL);
    return g_strjoinv("\n", (char **)names->pdata);
}

static void test_checked(void **state)
{
    (void)state;
#if !defined(__OPTIMIZE__) || defined(KILTER_SANITIZED)
    print_message("skipped: the build has no such checks, or sanitizers instead\n");
    skip();
#endif
    Image image = image_load(NULL);
    g_autofree char *needed = image_is_elf(&image) ? image_symbols(&image, false) : NULL;
    g_free(image.bytes);
    if (!needed)
        skip();
    assert_non_null(strstr(needed, "__stack_chk_fail\n"));
    assert_non_null(strstr(needed, "printf_chk\n"));
}

/* A program that was linked with a release finds all that it needs in the next one: names may be
 * added here, none taken away or changed in meaning while the library's version of symbols is
 * KILTER_0. */
static void test_symbols(void **state)
{
    (void)state;
    static const char RELEASED[] = "kilter_clusters\nkilter_free\nkilter_hear\nkilter_"
                                   "models\nkilter_plan\nkilter_planners\n"
                                   "kilter_simulate\nkilter_verify\nkilter_version";
    Image image = image_load("libkilter.so");
    g_autofree char *defined = image_is_elf(&image) ? image_symbols(&image, true) : NULL;
    g_free(image.bytes);
    if (!defined)
        skip();
    assert_string_equal(defined, RELEASED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linked),
        cmocka_unit_test(test_checked),
        cmocka_unit_test(test_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
