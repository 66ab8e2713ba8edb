// Whether the text of an element, or of one in it, runs from top to bottom, so that the element grows to a side
// (CSS Writing Modes 4, section 3.1). The page itself does so if its body does (section 8.1).
const growsSideways = (element) => [element, ...element.children].some((at) =>
  getComputedStyle(at).writingMode !== "horizontal-tb");
// The boxes in which the page scrolls, or in which it hides what does not fit (`overflow`, an
// expression for its value), of at least this part of the height of the viewport, or of its width.
const scrollBoxes = (overflow, part) => {
  const boxes = [];
  for (const element of document.querySelectorAll("body, body *")) {
    const isLong = element.scrollHeight - element.clientHeight >= 100 && element.clientHeight >= innerHeight * part;
    const isWide = element.scrollWidth - element.clientWidth >= 100 && element.clientWidth >= innerWidth * part;
    if (!isLong && !isWide) continue;
    const { overflowX, overflowY } = getComputedStyle(element);
    const [is, value] = growsSideways(element) ? [isWide, overflowX] : [isLong, overflowY];
    if (is && overflow.test(value)) boxes.push(element);
  }
  return boxes;
};
// The box in which the page scrolls, if the page does not scroll as a whole: the longest one.
const scrollBox = () => {
  const page = document.scrollingElement || document.documentElement;
  if (!page) return null;
  const scrolls = growsSideways(document.documentElement)
    ? page.scrollWidth > innerWidth + 1
    : page.scrollHeight > innerHeight + 1;
  if (scrolls) return null;
  const length = (box) => growsSideways(box) ? box.scrollWidth : box.scrollHeight;
  const longer = (one, other) => one && length(one) >= length(other) ? one : other;
  return scrollBoxes(/auto|scroll/, 1 / 2).reduce(longer, null);
};
// The style that decides about the overflow of the viewport: that of the root, or that of the body if the root
// has none (CSS Overflow 3, section 3.3).
const viewportStyle = () => {
  const styles = [document.documentElement, document.body].map((element) => element && getComputedStyle(element));
  const isVisible = (style) => style && style.overflowX === "visible" && style.overflowY === "visible";
  return isVisible(styles[0]) ? styles[1] : styles[0];
};
// Whether the page scrolls up and down, but hides what is at its sides, such as a menu that a click moves
// into view.
const hidesSides = () => {
  const style = viewportStyle();
  const isHidden = (value) => /hidden|clip/.test(value);
  return Boolean(style && isHidden(style.overflowX) && !isHidden(style.overflowY));
};
// Height of the viewport that would show all of a page which hides what does not fit and cannot be scrolled; 0 for
// another page.
const clippedHeight = () => {
  const page = document.scrollingElement || document.documentElement;
  if (!page || scrollBox()) return 0;
  const isHigher = page.scrollHeight > innerHeight + 1;
  if (isHigher && !/hidden|clip/.test(viewportStyle()?.overflowY)) return 0;
  const boxes = scrollBoxes(/hidden|clip/, 1 / 2).map((box) => innerHeight + box.scrollHeight - box.clientHeight);
  const height = Math.max(page.scrollHeight, ...boxes);
  return height > innerHeight + 100 ? height : 0;
};
// The same for a page that moves its parts itself when the wheel turns.
const turnedHeight = () => {
  const height = clippedHeight();
  const isMoved = (part) => part.offsetHeight >= 200 && part.offsetWidth >= innerWidth / 2 &&
    getComputedStyle(part).transform !== "none";
  return height > 0 && [...document.querySelectorAll("body *")].some(isMoved) ? height : 0;
};
