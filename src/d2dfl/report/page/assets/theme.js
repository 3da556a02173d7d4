// The system's choice until the reader makes one; some browsers refuse to remember it for a local file.
function theme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("d2dfl-theme");
  } catch {
    chosen = null;
  }
  const now = () => (chosen === "dark" || chosen === "light" ? chosen : dark.matches ? "dark" : "light");
  const apply = () => {
    root.dataset.theme = now();
    button.textContent = now() === "dark" ? "Light" : "Dark";
  };
  button.addEventListener("click", () => {
    chosen = now() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("d2dfl-theme", chosen);
    } catch {
      // it is then forgotten with the page
    }
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}
