// Writes down what a compiler makes of declarations, so that those of two headers can be
// compared that cannot be included together. Each line has a kind, a name and a text.
//
// A type's text has its size and signedness, and not its name: "i32" and "u64" are integers,
// "e32" an enumeration, "h64" a pointer to a type that is only declared, "s96" a structure or
// union of 96 bytes, "*const i8" a pointer to constant bytes, "i32(*void)" a function.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>

template <class T, class = void> struct is_complete : std::false_type {};
template <class T> struct is_complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

template <class T> struct text_of;

template <class... T> std::string list()
{
    std::string all;
    ((all += (all.empty() ? "" : ", ") + text_of<T>::get()), ...);
    return all;
}

template <class R, class... A> struct text_of<R(A...)> {
    static std::string get() { return text_of<R>::get() + "(" + list<A...>() + ")"; }
};

template <class T> struct text_of {
    static std::string get()
    {
        using plain = std::remove_cv_t<T>;
        if constexpr (std::is_const_v<T>) {
            return "const " + text_of<plain>::get();
        } else if constexpr (std::is_void_v<plain>) {
            return "void";
        } else if constexpr (std::is_pointer_v<plain>) {
            using target = std::remove_pointer_t<plain>;
            if constexpr (std::is_class_v<target> && !is_complete<target>::value)
                return "h64";
            else
                return "*" + text_of<target>::get();
        } else if constexpr (std::is_array_v<plain>) {
            return text_of<std::remove_extent_t<plain>>::get() + "[" + std::to_string(std::extent_v<plain>) + "]";
        } else {
            const char *kind = std::is_enum_v<plain> ? "e" : std::is_floating_point_v<plain> ? "f"
                             : !std::is_integral_v<plain> ? "s" : std::is_signed_v<plain> ? "i" : "u";
            const size_t size = std::is_integral_v<plain> || std::is_enum_v<plain> || std::is_floating_point_v<plain>
                                    ? 8 * sizeof(plain) : sizeof(plain);
            return kind + std::to_string(size);
        }
    }
};

#define FUNCTION(name) std::printf("function %s %s\n", #name, text_of<decltype(name)>::get().c_str());
#define NUMBER(name, value) std::printf("number %s %lld\n", name, (long long)(value));
#define LAYOUT(name, type) std::printf("layout %s size %zu, aligned to %zu\n", name, sizeof(type), alignof(type));
// Prints nothing for a field that the type does not have.
#define FIELD(name, type, field) \
    print_field<type>([](auto *p) -> decltype((void)p->field) {}, [](auto *p) { \
        using owner = std::remove_pointer_t<decltype(p)>; \
        std::printf("field %s at %zu, %s\n", name, offsetof(owner, field), text_of<decltype(p->field)>::get().c_str()); \
    });

template <class T, class Probe, class Print> void print_field(Probe, Print print)
{
    if constexpr (std::is_invocable_v<Probe, T *>) print((T *)nullptr);
}
