// The examples are started as a user starts them, against a `timer dev` of their own.
package examples_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
	"github.com/timer-platform/timer-platform/sdks/go/timertest"
)

func TestReminder(t *testing.T) {
	dev := timertest.Start(t)
	if output := started(t, dev, "reminder", dev.Receiver+"/remind"); !strings.Contains(output, "cart-4712 canceled\ncart-4711 pending") {
		t.Error(output)
	}
	dev.Advance(48 * time.Hour)
	if calls := dev.Inbox(timertest.Calls{Path: "/remind"}); len(calls) != 1 {
		t.Errorf("%+v", calls)
	}
}

func TestSagaTimeout(t *testing.T) {
	dev := timertest.Start(t)
	if output := started(t, dev, "saga-timeout", dev.Receiver+"/release"); output != "order-42 is paid\n" {
		t.Error(output)
	}
	if call := dev.WaitFor(timertest.Calls{Path: "/release"}); call.Body != `{"order":"order-43"}` {
		t.Error(call.Body)
	}
}

func TestReceiver(t *testing.T) {
	dev := timertest.Start(t)
	command := exec.Command(built(t, "receiver"), "127.0.0.1:0")
	command.Env = append(command.Environ(), "SIGNING_SECRET="+dev.SigningSecret)
	output, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	lines := bufio.NewScanner(output)
	lines.Scan()
	url := lines.Text()
	for _, reminder := range []timer.NewTimer{
		{Delay: time.Second, Callback: timer.HTTP{URL: url + "/remind", Payload: map[string]int{"cart": 4711}}},
		{Delay: time.Second, Callback: timer.HTTP{
			URL: url + "/poll", Protocol: timer.TimerProtocol, Payload: map[string]any{"name": "job 7", "done": true},
		}},
	} {
		if _, err := dev.Client.Timers.Create(t.Context(), reminder); err != nil {
			t.Fatal(err)
		}
	}
	dev.Advance(time.Second)
	var text string
	for range 2 {
		lines.Scan()
		text += lines.Text()
	}
	if !strings.Contains(text, `{"cart":4711}`) || !strings.Contains(text, "job 7 is done") {
		t.Error(text)
	}
}

func built(t *testing.T, name string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	if output, err := exec.Command("go", "build", "-o", binary, "./"+name).CombinedOutput(); err != nil {
		t.Fatal(err, string(output))
	}
	return binary
}

func started(t *testing.T, dev *timertest.Dev, name string, arguments ...string) string {
	t.Helper()
	command := exec.Command(built(t, name), arguments...)
	command.Env = append(command.Environ(), "TIMER_URL="+dev.URL, "TIMER_API_KEY="+dev.APIKey)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatal(err, string(output))
	}
	return string(output)
}
