/* The program as it was linked: its place in memory is drawn at each start, no table of functions can be written after it, and no
 * code lies on the stack. */
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

static Image image_load(void)
{
    Image image;
    assert_true(
        g_file_get_contents(g_getenv("KILTER_BIN"), &image.bytes, &image.n, NULL));
    return image;
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
    Image image = image_load();
    const Elf64_Ehdr *head = image_at(&image, 0, sizeof *head);
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
