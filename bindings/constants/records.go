package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"

	"halstream/bindings/records"
)

// recordFiles declare the records that cross the boundary to Python, as structs whose fields are named in JSON.
var recordFiles = []string{"bindings/records/records.go", "pybuild/records.go"}

// writeRecords writes the module halstream._record_types: a class for each record, with the comments that it has in Go.
func writeRecords(out *bufio.Writer) error {
	fmt.Fprintf(out, `"""The records that cross the boundary between Go and Python as JSON.

The build writes this module from %s: see bindings/constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TypedDict
else:

    class TypedDict(dict):
        """What a record is at run time; typing's evaluates every annotation, a sixth of the import's time."""


#: What the text of every error of the runtime begins with; an 'ErrorRecord' follows.
ERROR_PREFIX: Final = %q
`, strings.Join(recordFiles, " and "), records.ErrorPrefix)
	for _, path := range recordFiles {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if err := writeRecord(out, declaration); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return nil
}

// writeRecord writes the class of a declaration, if that is one of a record.
func writeRecord(out *bufio.Writer, declaration ast.Decl) error {
	d, ok := declaration.(*ast.GenDecl)
	if !ok || d.Tok != token.TYPE {
		return nil
	}
	spec := d.Specs[0].(*ast.TypeSpec)
	of, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	comment := strings.Join(strings.Fields(d.Doc.Text()), " ")
	comment = strings.TrimPrefix(strings.TrimPrefix(comment, spec.Name.Name), " is")
	comment = strings.TrimSpace(comment)
	if comment == "" {
		return fmt.Errorf("%s has no comment", spec.Name.Name)
	}
	fmt.Fprintf(out, "\n\nclass %s(TypedDict):\n    \"\"\"%s\"\"\"\n\n", recordName(spec.Name.Name),
		strings.ToUpper(comment[:1])+comment[1:])
	for _, field := range of.Fields.List {
		var name string
		if field.Tag != nil {
			name = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		}
		if name == "" || len(field.Names) != 1 {
			return fmt.Errorf("%s has a field that is not named in JSON, or not alone on its line", spec.Name.Name)
		}
		kind, err := recordType(field.Type)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", spec.Name.Name, name, err)
		}
		if above := strings.Join(strings.Fields(field.Doc.Text()), " "); above != "" {
			fmt.Fprintf(out, "    #: %s\n", above)
		}
		fmt.Fprintf(out, "    %s: %s", name, kind)
		if beside := strings.TrimSpace(field.Comment.Text()); beside != "" {
			fmt.Fprintf(out, "  #: %s", beside)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// recordName returns the name of a record's class: those of pybuild end with Record, and those of bindings/records not.
func recordName(name string) string {
	return strings.ToUpper(name[:1]) + strings.TrimSuffix(name[1:], "Record") + "Record"
}

// recordType returns what Python has where Go has a type.
func recordType(of ast.Expr) (string, error) {
	switch of := of.(type) {
	case *ast.Ident:
		switch of.Name {
		case "string":
			return "str", nil
		case "bool":
			return "bool", nil
		case "int", "int32", "int64", "uint32", "uint64":
			return "int", nil
		}
		return recordName(of.Name), nil
	case *ast.SelectorExpr:
		return recordName(of.Sel.Name), nil
	case *ast.StarExpr:
		inner, err := recordType(of.X)
		return inner + " | None", err
	case *ast.ArrayType:
		inner, err := recordType(of.Elt)
		if of.Len == nil {
			return "list[" + inner + "]", err
		}
		var n int
		if _, err := fmt.Sscan(of.Len.(*ast.BasicLit).Value, &n); err != nil {
			return "", err
		}
		return "tuple[" + strings.Repeat(inner+", ", n-1) + inner + "]", err
	}
	return "", fmt.Errorf("there is no type of Python for %T", of)
}
