// Plays recorded episodes side by side, and copies the command. Everything else on the page works without it.
(() => {
  "use strict";

  const panelOf = (root, episode) => {
    const part = (name) => root.querySelector(name);
    const scene = part(".scene");
    return { episode, scene, cart: part(".cart"), turn: part(".turn"), push: part(".push"), cursor: part(".cursor"),
      seen: part("[data-seen]"), action: part("[data-action]"), total: part("[data-total]"), step: part("[data-step]") };
  };

  const drawScene = (panel, i) => {
    const [x, angle] = panel.episode.state[i];
    const { metre, middle, axle } = panel.scene.dataset;
    panel.cart.setAttribute("transform", `translate(${Number(middle) + x * Number(metre)} ${axle})`);
    panel.turn.setAttribute("transform", `rotate(${(angle * 180) / Math.PI})`);
    panel.scene.classList.toggle("is-blank", panel.episode.blank[i] === 1);
    const action = panel.episode.action[i];
    panel.push.classList.toggle("is-on", action === "0" || action === "1");
    panel.push.setAttribute("transform", action === "0" ? "scale(-1 1)" : "");
  };

  const drawPanel = (panel, t) => {
    const { episode, cursor } = panel;
    const i = Math.min(t, episode.frames - 1);
    const over = t >= episode.frames;
    if (panel.scene) drawScene(panel, i);
    if (cursor) {
      const x = Number(cursor.dataset.left) + Number(cursor.dataset.step) * (i + 0.5);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
    panel.step.textContent = over ? `over at ${episode.frames}` : String(i);
    panel.seen.textContent = episode.blank[i] ? "blank" : "seen";
    panel.action.textContent = episode.action[i] || "none";
    panel.total.textContent = episode.total[i] === null ? "unknown" : String(episode.total[i]);
  };

  const start = (root, episodes) => {
    const panels = [...root.querySelectorAll(".panel")].map((panel, i) => panelOf(panel, episodes[i]));
    const slider = root.querySelector("input[type=range]");
    const button = root.querySelector("[data-play]");
    const speed = root.querySelector("select");
    const counter = root.querySelector("output");
    const last = Number(slider.max);
    let position = 0;
    let timer = 0; // 0: not playing

    const show = (t) => {
      position = t;
      panels.forEach((panel) => drawPanel(panel, t));
      slider.value = String(t);
      counter.textContent = `step ${t} of ${last}`;
      root.dataset.step = String(t);
    };
    const wait = () => (timer = setTimeout(tick, 1000 / Number(speed.value)));
    const pause = () => {
      clearTimeout(timer);
      timer = 0;
      button.textContent = "Play";
    };
    const tick = () => {
      show(position + 1);
      if (position < last) wait();
      else pause();
    };
    button.addEventListener("click", () => {
      if (timer) {
        pause();
        return;
      }
      show(position < last ? position : 0);
      button.textContent = "Pause";
      wait();
    });
    slider.addEventListener("input", () => {
      pause();
      show(Number(slider.value));
    });
    show(0);
  };

  const copy = async (button) => {
    const source = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source); // no clipboard here: leave it selected
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };

  const replays = JSON.parse(document.getElementById("replay-data").textContent);
  document.querySelectorAll("[data-replay]").forEach((root) => start(root, replays[root.dataset.replay]));
  document.querySelectorAll("[data-copies]").forEach((button) => button.addEventListener("click", () => copy(button)));
  document.documentElement.classList.add("scripted");
})();
