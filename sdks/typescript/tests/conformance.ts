// Runs sdks/conformance, and prints a line for each file: see the README there.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { TimerDev } from "../src/testing.js";
import { Rig, Scenario } from "./scenario.js";
import { VECTORS } from "./vectors.js";

const HERE = process.env.CONFORMANCE_DIR ?? resolve(import.meta.dirname ?? ".", "../../../conformance");
const LANGUAGE = "typescript";

async function files(directory: string): Promise<string[]> {
  return (await readdir(join(HERE, directory))).filter((name) => name.endsWith(".json")).sort();
}

async function run(rig: Rig, directory: string, file: string): Promise<boolean> {
  const stem = file.replace(/\.json$/, "");
  const name = directory === "vectors" ? `vectors/${stem}` : stem;
  if (![undefined, name].includes(process.env.CONFORMANCE_ONLY)) return true;
  const data = JSON.parse(await readFile(join(HERE, directory, file), "utf8"));
  try {
    if (directory === "vectors") await VECTORS[stem]!(rig, data);
    else await new Scenario(rig).run(data.steps);
    console.log(`${LANGUAGE} ${name} pass`);
    return true;
  } catch (error) {
    console.log(`${LANGUAGE} ${name} fail ${String(error).replaceAll("\n", " ")}`);
    return false;
  }
}

const dev = await TimerDev.start();
const proxy = spawn("python3", [join(HERE, "faulty.py"), dev.url], { stdio: ["pipe", "pipe", "inherit"] });
const [line] = await once(createInterface(proxy.stdout), "line");
const rig = new Rig(dev, JSON.parse(line).url);
for (const directory of ["vectors", "scenarios"]) {
  for (const file of await files(directory)) if (!(await run(rig, directory, file))) process.exitCode = 1;
}
proxy.stdin.end();
await dev.stop();
