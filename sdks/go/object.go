package timer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// object writes a JSON object member by member. Unlike [json.Marshal] it takes over a [json.RawMessage] byte for byte,
// and leaves out what was not given.
type object struct {
	text bytes.Buffer
	err  error
}

type writer interface{ write(*object) }

func objectOf(from writer) ([]byte, error) {
	var o object
	from.write(&o)
	return o.end()
}

func (o *object) end() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	if o.text.Len() == 0 {
		return []byte("{}"), nil
	}
	o.text.WriteByte('}')
	return o.text.Bytes(), nil
}

func (o *object) raw(name string, value []byte) {
	before := byte(',')
	if o.text.Len() == 0 {
		before = '{'
	}
	o.text.WriteByte(before)
	fmt.Fprintf(&o.text, "%q:", name)
	o.text.Write(value)
}

// json writes any value, exactly if it is JSON text already; nil is left out.
func (o *object) json(name string, value any) {
	if value == nil || o.err != nil {
		return
	}
	text, err := exactly(value)
	if err != nil {
		o.err = &Error{kind: ErrInvalid, Field: name, Message: name + " is not valid JSON", cause: err}
		return
	}
	o.raw(name, text)
}

func (o *object) string(name, value string) {
	if value != "" {
		o.json(name, value)
	}
}

func (o *object) duration(name string, value time.Duration) {
	switch {
	case value < 0:
		o.err = &Error{kind: ErrInvalid, Field: name, Message: name + " must not be negative"}
	case value > 0:
		o.string(name, FormatDuration(value))
	}
}

func (o *object) time(name string, value time.Time) {
	if !value.IsZero() {
		o.string(name, instant(value))
	}
}

func (o *object) member(name string, value writer) {
	text, err := objectOf(value)
	if err != nil {
		o.err = err
		return
	}
	o.raw(name, text)
}

func exactly(value any) ([]byte, error) {
	if text, ok := value.(json.RawMessage); ok {
		if !json.Valid(text) {
			return nil, fmt.Errorf("%.40q", text)
		}
		return text, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

func instant(value time.Time) string { return value.UTC().Format(time.RFC3339Nano) }
