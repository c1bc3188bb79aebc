package timer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
	"github.com/timer-platform/timer-platform/sdks/go/timertest"
	"github.com/timer-platform/timer-platform/sdks/go/webhook"
)

const stepMax = 10 * time.Second

// TestConformance runs the scenarios that every SDK must pass: see sdks/conformance/README.md.
func TestConformance(t *testing.T) {
	dev := timertest.Start(t)
	network := startNetwork(t, dev.URL)
	runEach(t, "", "scenarios/*.json", func(t *testing.T, text []byte) {
		var scenario struct {
			Steps []map[string]any `json:"steps"`
		}
		decode(t, text, &scenario)
		run := newRun(t, dev, network)
		for i, step := range scenario.Steps {
			if err := run.step(step); err != nil {
				t.Fatalf("step %d, %v: %v", i+1, step, err)
			}
		}
	})
}

// runEach runs a file after the other, and prints a line for each as the table of all languages wants it.
func runEach(t *testing.T, prefix, pattern string, test func(*testing.T, []byte)) {
	root := os.Getenv("CONFORMANCE_DIR")
	if root == "" {
		root = filepath.Join("..", "conformance")
	}
	files, _ := filepath.Glob(filepath.Join(root, pattern))
	if len(files) == 0 {
		t.Fatalf("there is no %s in %s: set CONFORMANCE_DIR", pattern, root)
	}
	for _, file := range files {
		name := prefix + strings.TrimSuffix(filepath.Base(file), ".json")
		if only := os.Getenv("CONFORMANCE_ONLY"); only != "" && only != name {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		outcome := "fail"
		if t.Run(name, func(t *testing.T) { test(t, text) }) {
			outcome = "pass"
		}
		fmt.Println("go", name, outcome)
	}
}

// network is the faulty server between the client and the service.
type network struct{ url string }

func startNetwork(t *testing.T, url string) *network {
	root := os.Getenv("CONFORMANCE_DIR")
	if root == "" {
		root = filepath.Join("..", "conformance")
	}
	command := exec.Command("python3", filepath.Join(root, "faulty.py"), url)
	input, _ := command.StdinPipe()
	output, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); _ = command.Wait() })
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var ready struct {
		URL string `json:"url"`
	}
	decode(t, line, &ready)
	return &network{ready.URL}
}

func (n *network) control(method, path string, body any) (answer any, err error) {
	text, _ := json.Marshal(body)
	request, _ := http.NewRequest(method, n.url+path, strings.NewReader(string(text)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}

func (n *network) requests(method, path string) (found []map[string]any, err error) {
	answer, err := n.control("GET", "/-/requests", nil)
	if err != nil {
		return nil, err
	}
	for _, request := range answer.(map[string]any)["requests"].([]any) {
		if request := request.(map[string]any); request["method"] == method && request["path"] == path {
			found = append(found, request)
		}
	}
	return found, nil
}

func (n *network) clear() {
	_, _ = n.control("PUT", "/-/faults", []any{})
	_, _ = n.control("DELETE", "/-/requests", nil)
}

// run is one scenario on its way.
type run struct {
	t       *testing.T
	dev     *timertest.Dev
	network *network
	values  map[string]any
	streams map[string]*stream
}

type stream struct {
	events chan any
	stop   context.CancelFunc
}

var namespaces = time.Now().UnixNano()

func newRun(t *testing.T, dev *timertest.Dev, network *network) *run {
	network.clear()
	namespaces++
	values := map[string]any{"namespace": fmt.Sprintf("go-%d", namespaces), "receiver": dev.Receiver}
	return &run{t, dev, network, values, map[string]*stream{}}
}

func (r *run) step(step map[string]any) error {
	step = r.filled(step).(map[string]any)
	result, err := r.do(step)
	if err != nil {
		return err
	}
	if name, ok := step["as"].(string); ok {
		r.values[name] = result
	}
	if expected, ok := step["expect"]; ok {
		return matches(expected, result, "result")
	}
	return nil
}

func (r *run) do(step map[string]any) (any, error) {
	for kind, value := range step {
		given, _ := value.(map[string]any)
		switch kind {
		case "call":
			return r.call(step)
		case "advance":
			by, err := time.ParseDuration(given["by"].(string))
			return shape(r.dev.Advance(by)), err
		case "answers":
			text, _ := json.Marshal(value)
			var answers []timertest.Answer
			err := json.Unmarshal(text, &answers)
			r.dev.SetAnswers(answers...)
			return nil, err
		case "inbox":
			return r.inbox(given["path"].(string), int(given["count"].(float64)))
		case "verify":
			return r.verify(given)
		case "watch":
			return nil, r.watch(step["as"].(string), given)
		case "events":
			return r.events(value.(string), step)
		case "stop":
			r.streams[value.(string)].stop()
			return nil, nil
		case "faults":
			return r.network.control("PUT", "/-/faults", value)
		case "requests":
			return nil, r.requested(given, step["headers"])
		case "same":
			pair := value.([]any)
			return nil, matches(pair[1], pair[0], "value")
		case "contains":
			if pair := value.([]any); !strings.Contains(pair[0].(string), pair[1].(string)) {
				return nil, fmt.Errorf("%q is not in %q", pair[1], pair[0])
			}
			return nil, nil
		}
	}
	return nil, fmt.Errorf("no such step: %v", step)
}

func (r *run) call(step map[string]any) (any, error) {
	options := []timer.ClientOption{timer.WithURL(r.network.url), timer.WithAPIKey(r.dev.APIKey)}
	if key, ok := step["api_key"].(string); ok {
		options = append(options, timer.WithAPIKey(key))
	}
	if millis, ok := step["timeout_ms"].(float64); ok {
		options = append(options, timer.WithTimeout(time.Duration(millis)*time.Millisecond))
	}
	given := args(step["args"].(map[string]any))
	options = append(options, timer.WithTrace(func(context.Context) timer.TraceContext {
		return timer.TraceContext{TraceParent: given.text("traceparent")}
	}))
	client, err := timer.NewClient(options...)
	if err != nil {
		return nil, err
	}
	call, ok := calls[step["call"].(string)]
	if !ok {
		return nil, fmt.Errorf("no such call")
	}
	started := time.Now()
	result, err := call(r.t.Context(), client, given)
	took := float64(time.Since(started).Milliseconds())
	if least, ok := step["took_ms_min"].(float64); ok && took < least {
		return nil, fmt.Errorf("it took only %v ms", took)
	}
	if most, ok := step["took_ms_max"].(float64); ok && took > most {
		return nil, fmt.Errorf("it took %v ms", took)
	}
	if expected, ok := step["error"]; ok {
		if err == nil {
			return nil, fmt.Errorf("it succeeded with %v", shape(result))
		}
		return nil, matches(expected, errorShape(err), "error")
	}
	return shape(result), err
}

func (r *run) inbox(path string, count int) (any, error) {
	for deadline := time.Now().Add(stepMax); ; {
		found := r.dev.Inbox(timertest.Calls{Path: path})
		if len(found) == count {
			return shape(found), nil
		}
		if len(found) > count || time.Now().After(deadline) {
			return nil, fmt.Errorf("%s was called %d times", path, len(found))
		}
		after := int64(0)
		if len(found) > 0 {
			after = found[len(found)-1].Seq
		}
		r.dev.WaitFor(timertest.Calls{Path: path, After: after})
	}
}

func (r *run) verify(call map[string]any) (any, error) {
	header := http.Header{}
	for name, value := range call["headers"].(map[string]any) {
		header.Set(name, value.(string))
	}
	verifier, err := webhook.NewVerifier(r.dev.SigningSecret)
	if err != nil {
		return nil, err
	}
	seconds, _ := strconv.ParseInt(header.Get("Webhook-Timestamp"), 10, 64)
	verifier.Now = func() time.Time { return time.Unix(seconds, 0) }
	verified, err := verifier.Verify(header, []byte(args(call).text("body")))
	return callShape(verified), err
}

func (r *run) watch(name string, given args) error {
	client, err := timer.NewClient(timer.WithURL(r.network.url), timer.WithAPIKey(r.dev.APIKey))
	if err != nil {
		return err
	}
	query := timer.WatchQuery{Filter: given.filter(), After: given.text("after")}
	for _, kind := range given.texts("types") {
		query.Types = append(query.Types, timer.EventType(kind))
	}
	before, _ := r.network.requests("GET", "/events")
	ctx, cancel := context.WithCancel(r.t.Context())
	events := make(chan any, 100)
	go func() {
		for event, err := range client.Timers.Watch(ctx, query) {
			if err != nil {
				events <- err
				return
			}
			events <- shape(event)
		}
	}()
	r.streams[name] = &stream{events, cancel}
	for deadline := time.Now().Add(stepMax); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		seen, err := r.network.requests("GET", "/events")
		if err != nil {
			return err
		}
		if len(seen) > len(before) && seen[len(seen)-1]["answered"] == true {
			return nil
		}
	}
	return fmt.Errorf("the stream was not opened")
}

func (r *run) events(name string, step map[string]any) (any, error) {
	var got []any
	expected, _ := step["expect"].([]any)
	until, hasUntil := step["until"]
	for len(got) < len(expected) || hasUntil {
		select {
		case event := <-r.streams[name].events:
			if err, ok := event.(error); ok {
				return nil, err
			}
			got = append(got, event)
			if hasUntil && matches(until, event, "event") == nil {
				return got, nil
			}
		case <-time.After(stepMax):
			return nil, fmt.Errorf("no further event after %v", got)
		}
	}
	return got, nil
}

func (r *run) requested(given map[string]any, headers any) error {
	found, err := r.network.requests(given["method"].(string), given["path"].(string))
	if err != nil {
		return err
	}
	if len(found) != int(given["count"].(float64)) {
		return fmt.Errorf("there were %d of them", len(found))
	}
	if headers != nil {
		return matches(headers, found[len(found)-1]["headers"], "headers")
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{([^}]+)\}`)

// filled replaces variables. What a step remembers or expects of later values stays as it is until then.
func (r *run) filled(value any) any {
	switch value := value.(type) {
	case string:
		if whole := variable.FindString(value); whole == value && whole != "" {
			return r.lookup(whole[2 : len(whole)-1])
		}
		return variable.ReplaceAllStringFunc(value, func(name string) string {
			return fmt.Sprint(r.lookup(name[2 : len(name)-1]))
		})
	case []any:
		filled := make([]any, len(value))
		for i, element := range value {
			filled[i] = r.filled(element)
		}
		return filled
	case map[string]any:
		filled := map[string]any{}
		for name, member := range value {
			filled[name] = r.filled(member)
		}
		return filled
	}
	return value
}

func (r *run) lookup(path string) any {
	var found any = r.values
	for _, part := range strings.Split(path, ".") {
		switch inside := found.(type) {
		case map[string]any:
			found = inside[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i < len(inside) {
				found = inside[i]
			}
		}
	}
	return found
}

// matches compares as the README says: what the expectation does not name does not matter.
func matches(expected, got any, path string) error {
	unlike := fmt.Errorf("%s is %v, not %v", path, got, expected)
	switch expected := expected.(type) {
	case map[string]any:
		if special, err := matchesSpecial(expected, got, path); special {
			return err
		}
		object, ok := got.(map[string]any)
		if !ok {
			return unlike
		}
		for name, member := range expected {
			if err := matches(member, object[name], path+"."+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(expected) {
			return unlike
		}
		for i, element := range expected {
			if err := matches(element, list[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if expected == "$any" && got != nil || reflect.DeepEqual(expected, got) || sameInstant(expected, got) {
		return nil
	}
	return unlike
}

func matchesSpecial(expected map[string]any, got any, path string) (bool, error) {
	list, _ := got.([]any)
	for name, value := range expected {
		number, _ := value.(float64)
		switch name {
		case "$length", "$min_length", "$max_length":
			length := float64(len(list))
			if name == "$length" && length != number || name == "$min_length" && length < number || name == "$max_length" && length > number {
				return true, fmt.Errorf("%s has %v elements, not %v", path, length, expected)
			}
			return true, nil
		case "$json":
			var parsed any
			text, _ := got.(string)
			if err := json.Unmarshal([]byte(text), &parsed); err != nil {
				return true, err
			}
			return true, matches(value, parsed, path)
		}
	}
	return false, nil
}

func sameInstant(a, b any) bool {
	first, firstOK := a.(string)
	second, secondOK := b.(string)
	if !firstOK || !secondOK {
		return false
	}
	one, err := time.Parse(time.RFC3339Nano, first)
	two, otherErr := time.Parse(time.RFC3339Nano, second)
	return err == nil && otherErr == nil && one.Equal(two)
}

func decode(t *testing.T, text []byte, out any) {
	t.Helper()
	if err := json.Unmarshal(text, out); err != nil && err != io.EOF {
		t.Fatal(err)
	}
}
