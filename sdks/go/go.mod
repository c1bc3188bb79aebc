module github.com/timer-platform/timer-platform/sdks/go

go 1.25
