// The boxes in which the page scrolls, or in which it hides what does not fit (`overflow`, an
// expression for its value), of at least this part of the height of the viewport.
const scrollBoxes = (overflow, part) => {
  const boxes = [];
  for (const element of document.querySelectorAll("body, body *")) {
    const over = element.scrollHeight - element.clientHeight;
    if (over < 100 || element.clientHeight < innerHeight * part) continue;
    if (overflow.test(getComputedStyle(element).overflowY)) boxes.push(element);
  }
  return boxes;
};
// The box in which the page scrolls, if the page does not scroll as a whole: the highest one.
const scrollBox = () => {
  const page = document.scrollingElement || document.documentElement;
  if (!page || page.scrollHeight > innerHeight + 1) return null;
  const higher = (one, other) => one && one.scrollHeight >= other.scrollHeight ? one : other;
  return scrollBoxes(/auto|scroll/, 1 / 2).reduce(higher, null);
};
// Whether the page scrolls up and down, but hides what is at its sides, such as a menu that a click moves
// into view. The viewport has the overflow of the root, or that of the body if the root has none
// (CSS Overflow 3, section 3.3).
const hidesSides = () => {
  const styles = [document.documentElement, document.body].map((element) => element && getComputedStyle(element));
  const isVisible = (style) => style && style.overflowX === "visible" && style.overflowY === "visible";
  const style = isVisible(styles[0]) ? styles[1] : styles[0];
  const isHidden = (value) => /hidden|clip/.test(value);
  return Boolean(style && isHidden(style.overflowX) && !isHidden(style.overflowY));
};
