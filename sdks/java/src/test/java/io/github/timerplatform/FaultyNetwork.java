package io.github.timerplatform;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The server of the conformance suite that breaks the network on demand. */
record FaultyNetwork(Process process, String url, HttpClient http) {
    static FaultyNetwork start(Path directory, String service) throws Exception {
        var process = new ProcessBuilder("python3", directory.resolve("faulty.py").toString(), service)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        var output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        var url = Json.parse(output.readLine()).members().get("url").string();
        return new FaultyNetwork(process, url, HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build());
    }

    void faults(Object faults) throws Exception {
        control("PUT", "/-/faults", Json.of(faults).text());
    }

    List<Map<String, Object>> requests() throws Exception {
        var answer = ConformanceTest.map(control("GET", "/-/requests", "").value());
        return ConformanceTest.list(answer.get("requests")).stream().map(ConformanceTest::map).toList();
    }

    List<Map<String, Object>> requests(Object method, Object path) throws Exception {
        return requests().stream().filter(seen -> seen.get("method").equals(method) && seen.get("path").equals(path)).toList();
    }

    void clear() throws Exception {
        faults(List.of());
        control("DELETE", "/-/requests", "");
    }

    private Json control(String method, String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url + path)).method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        return Json.parse(http.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }

    void stop() throws Exception {
        process.getOutputStream().close();
        process.waitFor();
    }
}
