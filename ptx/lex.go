package ptx

import (
	"fmt"
	"strings"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenNumber
	tokenString
	tokenMark // a single character
)

type token struct {
	kind tokenKind
	text string
	line int
}

// SyntaxError is a text that is no PTX, or PTX that the executor does not support.
type SyntaxError struct {
	Line int
	Text string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("ptx: line %d: %s", e.Line, e.Text) }

// lexer splits a text into tokens, one at a time. A word may contain dots and "::", as opcodes do.
type lexer struct {
	text string
	at   int
	line int
}

const (
	classWord   = 1 << iota // goes on in a word
	classStart              // begins a word
	classDigit              // begins a number
	classNumber             // goes on in a number
)

var classes = func() (c [256]uint8) {
	for i := range c {
		b := byte(i)
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '$' || b == '%'
		digit := b >= '0' && b <= '9'
		if letter || digit || b == '.' {
			c[i] |= classWord
		}
		if letter || b == '.' {
			c[i] |= classStart
		}
		if digit {
			c[i] |= classDigit
		}
		if digit || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '.' {
			c[i] |= classNumber
		}
	}
	return
}()

func (l *lexer) fail(format string, args ...any) {
	panic(&SyntaxError{l.line, fmt.Sprintf(format, args...)})
}

func (l *lexer) next() token {
	s := l.text
	for l.at < len(s) {
		switch c := s[l.at]; {
		case c == '\n':
			l.line++
			l.at++
		case c == ' ' || c == '\t' || c == '\r' || c == 0:
			l.at++
		case c == '/' && strings.HasPrefix(s[l.at:], "//"):
			n := strings.IndexByte(s[l.at:], '\n')
			if n < 0 {
				n = len(s) - l.at
			}
			l.at += n
		case c == '/' && strings.HasPrefix(s[l.at:], "/*"):
			n := strings.Index(s[l.at+2:], "*/")
			if n < 0 {
				l.fail("a comment does not end")
			}
			l.line += strings.Count(s[l.at:l.at+2+n], "\n")
			l.at += n + 4
		case c == '"':
			return l.string()
		case classes[c]&classDigit != 0:
			return l.number()
		case classes[c]&classStart != 0:
			return l.word()
		default:
			l.at++
			return token{tokenMark, s[l.at-1 : l.at], l.line}
		}
	}
	return token{tokenEnd, "end of text", l.line}
}

func (l *lexer) string() token {
	s, begin := l.text, l.at+1
	for i := begin; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\n':
			l.fail("a string does not end")
		case '"':
			l.at = i + 1
			return token{tokenString, s[begin:i], l.line}
		}
	}
	l.fail("a string does not end")
	return token{}
}

func (l *lexer) number() token {
	s, begin := l.text, l.at
	i := begin
	hex := strings.HasPrefix(s[begin:], "0x") || strings.HasPrefix(s[begin:], "0X")
	real := false
	for i < len(s) {
		c := s[i]
		exponent := (c == '+' || c == '-') && real && !hex && (s[i-1] == 'e' || s[i-1] == 'E')
		if classes[c]&classNumber == 0 && !exponent {
			break
		}
		real = real || c == '.'
		i++
	}
	l.at = i
	return token{tokenNumber, s[begin:i], l.line}
}

func (l *lexer) word() token {
	s, begin := l.text, l.at
	i := begin + 1
	for i < len(s) {
		if s[begin] == '.' && s[i] == '.' { // ".reg.b32" is two words
			break
		} else if classes[s[i]]&classWord != 0 {
			i++
		} else if s[i] == ':' && i+2 < len(s) && s[i+1] == ':' && classes[s[i+2]]&classWord != 0 {
			i += 3
		} else {
			break
		}
	}
	l.at = i
	return token{tokenWord, s[begin:i], l.line}
}

// skipBlock goes behind the "}" that ends a block whose "{" was read. Sections hold data for debuggers.
func (l *lexer) skipBlock() {
	for depth := 1; depth > 0; {
		t := l.next()
		switch {
		case t.kind == tokenEnd:
			l.fail("a section does not end")
		case t.kind == tokenMark && t.text == "{":
			depth++
		case t.kind == tokenMark && t.text == "}":
			depth--
		}
	}
}
