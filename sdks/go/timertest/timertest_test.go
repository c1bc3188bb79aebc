package timertest_test

import (
	"testing"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
	"github.com/timer-platform/timer-platform/sdks/go/timertest"
	"github.com/timer-platform/timer-platform/sdks/go/webhook"
)

func TestAMonthWithRetriesTakesNoTime(t *testing.T) {
	dev := timertest.Start(t)
	dev.SetAnswers(timertest.Answer{Path: "/reminder", Status: 503, Times: 2})
	created, err := dev.Client.Timers.Create(t.Context(), timer.NewTimer{
		Delay: 30 * 24 * time.Hour, Callback: timer.HTTP{URL: dev.Receiver + "/reminder"}, RetryPolicy: &timer.RetryPolicy{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if early := dev.Advance(29 * 24 * time.Hour); early.Fired != 0 || early.Pending != 1 {
		t.Errorf("%+v", early)
	}
	if next := dev.AdvanceToNext(); !next.Now.Equal(created.ExecuteAt) && next.Now.Before(created.ExecuteAt) {
		t.Errorf("%+v", next)
	}
	if idle := dev.AdvanceUntilIdle(); idle.Completed != 1 || idle.Pending != 0 {
		t.Errorf("%+v", idle)
	}
	if calls := dev.Inbox(timertest.Calls{Timer: created.ID}); len(calls) != 3 || !calls[2].SignatureValid || calls[2].Attempt != 3 {
		t.Errorf("%+v", calls)
	}
	verifier, err := webhook.NewVerifier(dev.SigningSecret)
	if err != nil {
		t.Fatal(err)
	}
	verifier.Now = dev.Now
	for _, call := range dev.Inbox(timertest.Calls{Path: "/reminder"}) {
		if verified, err := verifier.Verify(call.Header(), []byte(call.Body)); err != nil || verified.TimerID != string(created.ID) {
			t.Error(verified, err)
		}
	}
	dev.ClearInbox()
	if calls := dev.Inbox(timertest.Calls{}); len(calls) != 0 {
		t.Errorf("%+v", calls)
	}
}
