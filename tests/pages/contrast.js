// Every piece of text that is seen, with its contrast against what is painted behind it, where that is below AA (WCAG 1.4.3).
(() => {
  const channels = (colour) => {
    const found = colour.match(/rgba?\(([^)]+)\)/);
    if (!found) return null;
    const parts = found[1].split(/[ ,/]+/).map(Number);
    return parts.length > 3 && parts[3] < 0.5 ? null : parts.slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const painted = (element) => {
    const style = getComputedStyle(element);
    if (element instanceof SVGElement && !(element instanceof SVGSVGElement)) {
      if (!["rect", "path", "circle"].includes(element.tagName)) return null;
      const area = element.getBBox();
      return area.width && area.height ? channels(style.fill) : null; // a straight line has no inside
    }
    return channels(style.backgroundColor);
  };
  const behind = (element, x, y) => {
    for (const other of document.elementsFromPoint(x, y)) {
      if (element instanceof SVGElement ? other === element : other !== element && element.contains(other)) continue;
      if (!(element instanceof SVGElement) && !other.contains(element)) continue;
      const colour = painted(other);
      if (colour) return colour;
    }
    for (let up = element; up; up = up.parentElement) {
      const colour = up instanceof SVGElement ? null : painted(up);
      if (colour) return colour;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark") ? [18, 18, 18] : [255, 255, 255];
  };
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const failures = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body || document.documentElement, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || ["STYLE", "TITLE", "title", "desc", "style", "SCRIPT"].includes(element.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    const style = getComputedStyle(element);
    if (!box.width || style.visibility === "hidden" || box.right < 0) continue;
    const colour = channels(element instanceof SVGElement ? style.fill : style.color);
    const scale = element instanceof SVGElement ? element.getScreenCTM().a || 1 : 1;
    const size = parseFloat(style.fontSize) * Math.abs(scale);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    seen += 1;
    for (const part of [0.15, 0.5, 0.85]) {
      const back = behind(element, box.left + box.width * part, box.top + box.height / 2);
      const found = colour ? ratio(colour, back) : 0;
      if (found < needed) {
        failures.push(`${node.textContent.trim().slice(0, 40)}: ${found.toFixed(2)} of ${needed} (${style.fill || style.color} on rgb(${back}))`);
        break;
      }
    }
  }
  return { seen, failures };
})()
