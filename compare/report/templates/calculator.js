const form = document.getElementById("my-step");
const counts = ["ops", "floats", "shapes", "runs"];
const seconds = (value) => {
  const [unit, name] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([size]) => value >= size) || [1e-9, "ns"];
  return `${Number((value / unit).toPrecision(3))} ${name}`;
};
const refusal = (name) => {
  const field = form.elements[name];
  const value = Number(field.value);
  const wrong = field.validity.badInput || !field.value.trim() || !Number.isInteger(value) || value < 1;
  field.setAttribute("aria-invalid", wrong);
  return wrong ? `${field.parentElement.firstChild.textContent.trim()} must be a whole number, 1 or more.` : "";
};
const answer = () => {
  const [ops, floats, wanted, runs] = counts.map((name) => Number(form.elements[name].value));
  const model = models[Number(form.elements.kind.value)];
  const shapes = Math.min(wanted, runs);
  const step = ([a, b, c]) => a + ops * (b + c * floats);
  const [dynamic, static_] = [step(model.dynamic), step(model.static)];
  const compiling = shapes * (model.build[0] + model.build[1] * ops);
  const [slow, fast] = [runs * dynamic, compiling + runs * static_];
  const times = Math.max(fast / slow, slow / fast);
  const ahead = `${Number(times.toPrecision(2))}× ${fast < slow ? "faster" : "slower"}`;
  const gain = dynamic - static_;
  const paid = gain > 0 ? `It is paid back after ${Math.ceil(compiling / gain).toLocaleString("en")} runs.` : "It is never paid back.";
  const close = times < model.error;
  const verdict = close ? "Too close for this formula" : fast < slow ? "Compile" : "Stay dynamic";
  return `${verdict}: in all, static is ${ahead} than dynamic, ${seconds(fast)} against ${seconds(slow)} for all runs, ` +
    `${seconds(compiling)} of it to compile. ${paid}`;
};
const answered = () => {
  const refused = counts.map(refusal).filter(Boolean).join(" ");
  form.elements.answer.value = refused || answer();
  form.elements.answer.toggleAttribute("data-refused", Boolean(refused));
};
form.addEventListener("input", answered);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
answered();
