"""Finds text that is hard to read, in the browser."""

CONTRAST = """
(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const over = ([r, g, b, a = 1], back) => [r, g, b].map((part, index) => a * part + (1 - a) * back[index]);
  const ground = (node) => {
    const layers = [];
    for (let it = node; it; it = it.parentElement) {
      const layer = channels(getComputedStyle(it).backgroundColor);
      layers.unshift(layer);
      if ((layer[3] ?? 1) > 0.99) break;
    }
    return layers.reduce((back, layer) => over(layer, back), [255, 255, 255]);
  };
  const poor = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
    if (!own || ["SCRIPT", "STYLE", "TITLE", "NOSCRIPT", "OPTION"].includes(node.tagName.toUpperCase())) continue;
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const look = getComputedStyle(node);
    const drawn = node instanceof SVGElement;
    const circle = drawn && node.closest(".node") && node.parentElement.querySelector("circle.face");
    const inside = circle && !node.classList.contains("count") && !node.classList.contains("name");
    const back = inside ? channels(getComputedStyle(circle).fill).slice(0, 3) : ground(drawn ? node.closest("svg").parentElement : node);
    const ink = over(channels(drawn ? look.fill : look.color), back);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(`${node.tagName}.${node.getAttribute("class")} ${node.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)];
})()
"""
